#!/bin/sh
# Upcycles the SmolLM2 file to 4 equal experts, top-2, in the cache folder; prints its sha256 and, as the last line,
# its path. Without options 248 MB of Q4_1; --f32 (alone) starts from the float32 file and takes 1.5 GB. Any other
# options go to upcycle-moe.py (see --help); each set of options has a file of its own.
set -eu
assets=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$assets/cache.sh"

digest=4d1d0366e2221fdd9b3f7bf69b400c6fa4afce8864655096f8660c64c22b0cd7
digest_f32=c0a4ef47568daa2843a49051120a7668ce19c175ec2665dc2e97805ac578f447

use_venv gguf
case " $* " in *' -h '* | *' --help '*) "$venv_python" "$assets/upcycle-moe.py" --help; exit ;; esac

case "$#:${1-}" in
0:)
    dense=$(path_of "$assets/fetch-models.sh")
    build_model SmolLM2-135M-Instruct.Q4_1-moe4x2.gguf "$digest" "$assets/upcycle-moe.py" "$dense"
    ;;
1:--f32)
    dense=$(path_of "$assets/make-f32-model.sh")
    build_model SmolLM2-135M-Instruct.F32-moe4x2.gguf "$digest_f32" "$assets/upcycle-moe.py" "$dense"
    ;;
*)
    dense=$(path_of "$assets/fetch-models.sh")
    "$venv_python" "$assets/upcycle-moe.py" "$dense" "$scratch/moe.gguf" "$@" >"$scratch/found" || exit $?
    found=$(cut -d ' ' -f 2 "$scratch/found")
    # Named by content: the same options always lead to the same name.
    model=$cache/SmolLM2-135M-Instruct.Q4_1-moe-$(printf %.12s "$found").gguf
    mv -f "$scratch/moe.gguf" "$model"
    printf 'sha256 %s\n%s\n' "$found" "$model"
    ;;
esac
