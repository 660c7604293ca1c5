#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lm_bench_fuzz::plan_file(bytes));
