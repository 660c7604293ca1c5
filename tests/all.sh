#!/usr/bin/env bash
# Sets up what the tests need beyond Rust and a C compiler, then runs all of them.
#
# Needs nothing installed by hand. Downloads, by package name and once: the WASM target (rustup, or apt for a Debian
# Rust of the same version), the test model and reference tools (PyPI), and what plugins in JavaScript and Python are built
# with (npm, PyPI), clang for components of C (apt). Without the target nothing is run. What else is missing makes the tests that need it be skipped
# loudly, except where CI is set: there a missing download is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# wasm_target: sees to it that components can be built; says what to do where it cannot.
wasm_target() {
    local target=wasm32-unknown-unknown package=libstd-rust-dev-wasm32 sysroot version offered
    sysroot=$(rustc --print sysroot)
    [ ! -d "$sysroot/lib/rustlib/$target/lib" ] || return 0
    if command -v rustup >/dev/null; then
        echo "setup: adding the Rust target $target"
        rustup target add "$target" && return 0
    fi
    # Debian's package of the target fits only Debian's own compiler, version for version, and components need
    # that compiler's wasm-component-ld too.
    version=$(rustc --version | cut -d ' ' -f 2)
    offered=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
    if [ "$sysroot" = /usr ] && [[ $offered == "$version"* ]] && ls /usr/lib/rustlib/*/bin/wasm-component-ld >&2; then
        echo "setup: installing $package $offered"
        apt-get install -y --no-install-recommends "$package" && return 0
    fi
    echo "setup: rustc $version in $sysroot has no target $target, rustup did not bring it, and Debian's" \
        "$package (${offered:-not known here}) does not fit it, or its wasm-component-ld is missing: the tests of components cannot run." \
        "Use a Rust from rustup with network once: rustup target add $target" >&2
    return 1
}

wasm_target

# model VARIABLE SCRIPT [ARGUMENT]: exports the path of what a script gets or makes.
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

# Their tests run once there is no doubt that the tools can be had.
model LM_BENCH_TEST_JS fetch-tools.sh js
model LM_BENCH_TEST_PYTHON fetch-tools.sh python
model LM_BENCH_TEST_MDBOOK fetch-tools.sh mdbook
model LM_BENCH_TEST_CLANG fetch-tools.sh clang

exec cargo test --locked --workspace "$@"
