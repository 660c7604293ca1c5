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

if model=$(tests/assets/fetch-models.sh | tail -n 1); then
    export LM_BENCH_TEST_MODEL=$model
    echo "setup: model $model"
else
    echo 'setup: NO TEST MODEL: tests on the real model will be SKIPPED' >&2
    [ -z "${CI:-}" ] || exit 1
fi

if moe=$(tests/assets/make-moe-model.sh | tail -n 1); then
    export LM_BENCH_TEST_MOE_MODEL=$moe
    echo "setup: mixture-of-experts model $moe"
else
    echo 'setup: NO MIXTURE-OF-EXPERTS TEST MODEL: its tests will be SKIPPED' >&2
    [ -z "${CI:-}" ] || exit 1
fi

exec cargo test --locked --workspace "$@"
