#!/usr/bin/env bash
# Sets up what the tests need beyond Rust and a C compiler, then runs all of them.
#
# Needs nothing installed by hand. Downloads, by package name and once: the WASM target (rustup), the
# test model and reference tools (PyPI). Without network the tests that need them are skipped loudly,
# except where CI is set: there a missing download is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
if ! ls "$(rustc --print sysroot)/lib/rustlib/$target/lib" >/dev/null 2>&1; then
    echo "setup: adding the Rust target $target"
    rustup target add "$target"
fi

# model VARIABLE SCRIPT [ARGUMENT]: exports the file that a script gets or makes.
model() {
    local variable=$1 path
    shift
    if path=$("tests/assets/$@" | tail -n 1) && [ -n "$path" ]; then
        export "$variable=$path"
        echo "setup: $variable=$path"
    else
        echo "setup: tests/assets/$* FAILED: the tests that need $variable will be SKIPPED" >&2
        [ -z "${CI:-}" ] || exit 1
    fi
}

model LM_BENCH_TEST_MODEL fetch-models.sh
model LM_BENCH_TEST_F32_MODEL make-f32-model.sh
model LM_BENCH_TEST_MOE_MODEL make-moe-model.sh
model LM_BENCH_TEST_MOE_F32_MODEL make-moe-model.sh --f32

exec cargo test --locked --workspace "$@"
