#!/bin/sh
# Records llama.cpp's tokens and greedy continuations of SmolLM2: the Q4_1 file, its float32
# copy and its upcycled mixture of experts, and that mixture's routing.
# Writes into the cache folder unless told otherwise: make-reference.sh [--out FOLDER]
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

out=$cache/reference
case "$#:${1-}" in
0:) ;;
2:--out) out=$2 ;;
*) echo "usage: ${0##*/} [--out FOLDER]" >&2; exit 2 ;;
esac

use_venv llama
dense=$(path_of "$assets/fetch-models.sh")
moe=$(path_of "$assets/make-moe-model.sh")
f32=$(path_of "$assets/make-f32-model.sh")
"$venv_python" "$assets/make-reference.py" "$dense" "$moe" "$f32" --out "$out"
use_venv gguf
"$venv_python" "$assets/make-routing.py" "$moe" "$out/smollm2-f32.json" "$out/smollm2-routing.json"
