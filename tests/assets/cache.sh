# Sourced by the scripts beside it; needs `assets` set to this folder.
# Everything they fetch or build lives in one cache folder outside the source tree. A finished file or
# environment appears there by a rename within the folder, so a reader never sees half of one, and a lock
# keeps two runs from doing the same work twice.

cache=${LM_BENCH_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set LM_BENCH_TEST_CACHE, XDG_CACHE_HOME or HOME}/.cache}/lm-bench-tests}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
python=${LM_BENCH_PYTHON:-python3}
scratch=
# Importing a module must not leave byte code in the source tree.
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

remove_scratch() { if [ -n "$scratch" ]; then rm -rf "$scratch"; fi; }
trap remove_scratch EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# A folder of this run's own inside the cache (renames out of it stay on one file system).
make_scratch() {
    mkdir -p "$cache" 2>/dev/null || fail "cannot create the cache folder $cache; set LM_BENCH_TEST_CACHE to a writable one"
    [ -n "$scratch" ] || scratch=$(mktemp -d "$cache/.work.XXXXXX") || fail "cannot write into $cache"
}

need_python() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "needs Python 3.11 or newer as '$python'; set LM_BENCH_PYTHON"
}

# lock NAME: waits until no other run holds NAME; held until this shell ends. Where flock is missing two runs
# may repeat work, but the renames still keep the result whole.
lock() {
    command -v flock >/dev/null 2>&1 || return 0
    exec 9>"$cache/.$1.lock"
    flock 9
}

unlock() { exec 9>&-; }

sha256() {
    "$python" -c 'import hashlib, sys
with open(sys.argv[1], "rb") as f: print(hashlib.file_digest(f, "sha256").hexdigest())' "$1"
}

# last_error LOG: the line of pip's log that says what went wrong.
last_error() {
    grep -i 'error' "$1" | tail -n 1 | cut -c 1-300 | grep . || tail -n 1 "$1"
}

# use_venv NAME: sets `venv_python` to an interpreter with requirements/NAME.txt installed.
use_venv() {
    need_python
    make_scratch
    requirements=$assets/requirements/$1.txt
    key=$("$python" -c 'import hashlib, sys
with open(sys.argv[1], "rb") as f: print(hashlib.sha256(f.read() + sys.version.encode()).hexdigest()[:12])' "$requirements")
    venv=$cache/venv-$1-$key
    venv_python=$venv/bin/python
    [ -x "$venv_python" ] && return 0
    lock "venv-$1"
    if [ ! -x "$venv_python" ]; then
        "$python" -m venv "$scratch/venv" >"$scratch/log" 2>&1 ||
            fail "cannot create a virtual environment with $python; install its venv module (Debian: python3-venv)"
        "$scratch/venv/bin/python" -m pip install -q --no-deps --only-binary :all: -r "$requirements" >"$scratch/log" 2>&1 ||
            fail "pip could not install $requirements: $(last_error "$scratch/log")"
        # Only bin/python is used, and it finds its packages relative to itself, so the folder may move.
        "$python" -c 'import os, sys; os.rename(*sys.argv[1:])' "$scratch/venv" "$venv" 2>/dev/null ||
            [ -x "$venv_python" ] || fail "cannot move the virtual environment to $venv"
    fi
    unlock
}

# build_model FILE DIGEST PROGRAM SOURCE: makes FILE in the cache by `PROGRAM SOURCE OUT` unless it is there, checks
# its sha256 and prints that and, as the last line, the path. Needs use_venv.
build_model() {
    lock models
    if ! [ -f "$cache/$1" ] || [ "$(sha256 "$cache/$1")" != "$2" ]; then
        found=$("$venv_python" "$3" "$4" "$scratch/model.gguf") || fail "${3##*/} failed"
        [ "$found" = "sha256 $2" ] || fail "${3##*/} made a file with $found, expected $2"
        mv -f "$scratch/model.gguf" "$cache/$1"
    fi
    unlock
    printf 'sha256 %s\n%s\n' "$2" "$cache/$1"
}

# path_of SCRIPT ARGS...: the path that SCRIPT prints as its last line; fails when SCRIPT fails, which a pipe would hide.
path_of() {
    printed=$("$@") || exit $?
    printf '%s\n' "$printed" | tail -n 1
}
