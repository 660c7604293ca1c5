#!/bin/sh
# llama.cpp's side of the CPU speed comparison: llama-bench.sh THREADS PROMPT_TOKENS OUTPUT_TOKENS REPEATS [MODEL]
# prints JSON with the medians of prefill and decode tokens per second, by the timings that llama.cpp's server
# reports, at llama.cpp's default settings. MODEL is a GGUF; without it the SmolLM2 file is fetched.
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

case $# in
4 | 5) ;;
*) echo "usage: ${0##*/} THREADS PROMPT_TOKENS OUTPUT_TOKENS REPEATS [MODEL]" >&2; exit 2 ;;
esac
use_venv llama
if [ $# -eq 5 ]; then
    model=$5
    [ -f "$model" ] || fail "no such file: $model"
else
    model=$(path_of "$assets/fetch-models.sh")
fi
"$venv_python" "$assets/llama-bench.py" --model "$model" --threads "$1" --prompt "$2" --output "$3" --repeats "$4"
