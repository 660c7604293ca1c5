"""llama.cpp's own HTTP server, run inside this process by the PyPI package xllamacpp, on a free local port."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import xllamacpp

# No proxy: the server is on the loopback interface.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class LlamaServer:
    """One model, one slot, CPU only. `exact` chooses plain attention over an f32 KV cache and no repacked weights;
    without it llama.cpp keeps its defaults (f16 cache, flash attention and repacking as it sees fit)."""

    def __init__(self, model: Path, threads: int, context: int, exact: bool):
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_gpu_layers = 0
        params.n_ctx = context
        params.n_parallel = 1
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.ui = False
        params.verbosity = 1  # errors only
        params.cache_ram_mib = 0
        params.fit_params = False  # settings as given, not as guessed from free memory
        if exact:
            params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
            params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
            params.no_extra_bufts = True
        self.settings = {
            "n_gpu_layers": 0,
            "n_ctx": context,
            "n_parallel": 1,
            "threads": threads,
            "n_batch": params.n_batch,
            "n_ubatch": params.n_ubatch,
            "cache_type_k": params.cache_type_k.name.removeprefix("GGML_TYPE_").lower(),
            "cache_type_v": params.cache_type_v.name.removeprefix("GGML_TYPE_").lower(),
            "flash_attn": params.flash_attn_type.name.removeprefix("LLAMA_FLASH_ATTN_TYPE_").lower(),
            "repack": not params.no_extra_bufts,
        }
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise SystemExit(f"llama.cpp cannot serve {model}: {error}") from error

    def post(self, path: str, body: dict) -> dict:
        request = urllib.request.Request(
            self._server.listening_address + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with _opener.open(request, timeout=1800) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"llama.cpp refused {path}: {error.read().decode(errors='replace')}") from error

    def tokenize(self, text: str, parse_special: bool) -> list[int]:
        body = {"content": text, "add_special": True, "parse_special": parse_special}
        return self.post("/tokenize", body)["tokens"]


def tool() -> dict:
    """What ran: package, version, and what the build says of itself."""
    return {
        "tool": "llama.cpp server in PyPI xllamacpp",
        "version": xllamacpp.__version__,
        "build": xllamacpp.BUILD_INFO,
        "system_info": xllamacpp.get_system_info().strip().rstrip("|").strip(),
    }
