#!/usr/bin/env bash
# Fuzzes each reader of foreign bytes for some seconds: tests/fuzz.sh [SECONDS [TARGET…]], 60 seconds if not said.
#
# Needs Rust and a C++ compiler (libFuzzer is C++), no nightly and no cargo-fuzz: the coverage that guides libFuzzer is
# a pass of stable rustc. Inputs that were found are kept in ${XDG_CACHE_HOME:-~/.cache}/lm-bench-tests/fuzz, so each
# run starts where the last one ended. An input that crashes, hangs for 10 s or takes 1 GiB ends the script with 1; its
# path is printed, and `BINARY PATH` repeats it.
set -euo pipefail
cd "$(dirname "$0")/fuzz"

seconds=${1:-60}
case $seconds in '' | *[!0-9]*) echo "usage: tests/fuzz.sh [SECONDS [TARGET…]]" >&2 && exit 1 ;; esac
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(cd targets && ls -- *.rs | sed 's/\.rs$//'))

cache=${XDG_CACHE_HOME:-$HOME/.cache}/lm-bench-tests/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../../target/fuzz}
# With --target the flags apply to the code under test only, not to build scripts and macros.
export RUSTFLAGS='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares'
cargo build --locked --release --target "$host"

for target in "${targets[@]}"; do
    binary=$CARGO_TARGET_DIR/$host/release/$target
    corpus=$cache/$target
    mkdir -p "$corpus"
    seeds=()
    [ ! -d "seeds/$target" ] || seeds+=("seeds/$target")
    [ "$target" != recording ] || seeds+=(../fixtures/recordings)
    printf '\n== %s for %s s\n' "$target" "$seconds"
    log=$cache/$target.log
    if ! "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
        -artifact_prefix="$cache/$target-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz: $target FAILED; to repeat: $binary $(ls -t "$cache/$target"-* | head -n 1)" >&2
        exit 1
    fi
    grep -E 'DONE|stat::' "$log" || tail -n 1 "$log"
done
printf '\nfuzz: %s targets, %s s each: no crash\n' "${#targets[@]}" "$seconds"
