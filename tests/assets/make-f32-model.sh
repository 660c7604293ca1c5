#!/bin/sh
# Dequantises the SmolLM2 file to float32 (540 MB) in the cache folder; prints its sha256 and, as the last line,
# its path.
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

digest=b89c75c028f12c4213f91818e76d782f99cbd7de4a610a1a420a11ea86c167b9

[ $# -eq 0 ] || { echo "usage: ${0##*/} (no arguments)" >&2; exit 2; }
use_venv gguf
dense=$(path_of "$assets/fetch-models.sh")
build_model SmolLM2-135M-Instruct.F32.gguf "$digest" "$assets/dequantize.py" "$dense"
