#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lm_bench_fuzz::tokenizer_json(bytes));
