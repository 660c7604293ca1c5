#!/bin/sh
# Computes the golden values of FP8 E4M3 quantisation with ml_dtypes.
# Writes into the cache folder unless told otherwise: fp8-golden.sh [--out FOLDER]
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

out=$cache/reference
case "$#:${1-}" in
0:) ;;
2:--out) out=$2 ;;
*) echo "usage: ${0##*/} [--out FOLDER]" >&2; exit 2 ;;
esac

use_venv fp8
mkdir -p "$out"
"$venv_python" "$assets/fp8-golden.py" "$scratch/fp8-golden.json" || fail "fp8-golden.py failed"
# Copied beside its target first: the rename must stay on one file system.
cp "$scratch/fp8-golden.json" "$out/.fp8-golden.json.$$"
mv -f "$out/.fp8-golden.json.$$" "$out/fp8-golden.json"
printf '%s\n' "$out/fp8-golden.json"
