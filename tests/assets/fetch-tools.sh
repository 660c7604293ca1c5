#!/bin/sh
# Fetches the tools that plugins in JavaScript (npm), Python (PyPI) or C (apt) are built with, as their projects pin them, so that
# the package manager has them in its own cache. Prints the package manager's path as the last line.
# `mdbook` fetches mdBook (PyPI), which makes a book of docs/, and prints its path.
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

templates=$assets/../../host/src/plugin/new_plugin/templates
case ${1-} in
js)
    npm=$(command -v npm) || fail "needs Node.js 20.6 or newer with npm (https://nodejs.org)"
    make_scratch
    sed 's/{{id}}/fetched/; s/{{version}}/0.1.0/' "$templates/js/package.json" >"$scratch/package.json"
    (cd "$scratch" && "$npm" install --prefer-offline --no-audit --no-fund --ignore-scripts) >"$scratch/log" 2>&1 ||
        fail "npm could not install what $templates/js/package.json names: $(last_error "$scratch/log")"
    printf '%s\n' "$npm"
    ;;
python)
    need_python
    make_scratch
    "$python" -m venv "$scratch/venv" >"$scratch/log" 2>&1 ||
        fail "cannot create a virtual environment with $python; install its venv module (Debian: python3-venv)"
    "$scratch/venv/bin/python" -m pip download -q -d "$scratch/wheels" -r "$templates/python/requirements.txt" >"$scratch/log" 2>&1 ||
        fail "pip could not fetch what $templates/python/requirements.txt names: $(last_error "$scratch/log")"
    command -v "$python"
    ;;
mdbook)
    use_venv mdbook
    printf '%s\n' "$venv/bin/mdbook"
    ;;
clang)
    if ! clang --version >/dev/null 2>&1 || ! wasm-ld --version >/dev/null 2>&1; then
        make_scratch
        { apt-get install -y --no-install-recommends clang lld ||
            { apt-get update && apt-get install -y --no-install-recommends clang lld; }; } >"$scratch/log" 2>&1 ||
            fail "needs clang and its linker, and apt-get could not install them (packages clang, lld): $(last_error "$scratch/log")"
    fi
    command -v clang
    ;;
*)
    echo "usage: ${0##*/} js|python|mdbook|clang" >&2
    exit 2
    ;;
esac
