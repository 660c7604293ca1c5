"""Prefill and decode speed of llama.cpp by its own server's timings, as JSON on stdout."""

import argparse
import json
import os
import statistics
from pathlib import Path

from llama_server import LlamaServer, tool


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=positive, required=True)
    parser.add_argument("--prompt", type=positive, required=True, metavar="TOKENS")
    parser.add_argument("--output", type=positive, required=True, metavar="TOKENS")
    parser.add_argument("--repeats", type=positive, required=True)
    args = parser.parse_args()
    if args.output < 2:
        parser.error("--output must be at least 2: prefill gives the first token, decode steps the others")
    return args


def once(server: LlamaServer, prompt: list[int], output: int) -> dict:
    body = {"prompt": prompt, "n_predict": output, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    timings = server.post("/completion", body)["timings"]
    if (timings["prompt_n"], timings["predicted_n"]) != (len(prompt), output):
        raise SystemExit(f"llama-bench: the server counted {timings}, asked {len(prompt)} + {output} tokens")
    return timings


def main() -> None:
    args = parse()
    server = LlamaServer(args.model, args.threads, context=args.prompt + args.output + 8, exact=False)
    # Ordinary tokens spread over the vocabulary; speed does not depend on which they are.
    prompt = [1000 + 7919 * k % 40000 for k in range(args.prompt)]
    load_before = os.getloadavg()[0]
    once(server, prompt, args.output)  # warm-up, not counted
    runs = [once(server, prompt, args.output) for _ in range(args.repeats)]
    prefill = [args.prompt / run["prompt_ms"] * 1e3 for run in runs]
    # The first token comes out of prefill, so `output` tokens took `output - 1` decode steps.
    decode = [(args.output - 1) / run["predicted_ms"] * 1e3 for run in runs]
    result = {
        **tool(),
        "model": args.model.name,
        "settings": server.settings,
        "prompt_tokens": args.prompt,
        "output_tokens": args.output,
        "repeats": args.repeats,
        "prefill_tokens_per_second": round(statistics.median(prefill), 2),
        "decode_tokens_per_second": round(statistics.median(decode), 2),
        "decode_ms_per_token": round(1e3 / statistics.median(decode), 3),
        "prefill_all": [round(v, 2) for v in prefill],
        "decode_all": [round(v, 2) for v in decode],
        "cpus": os.cpu_count(),
        "load_average": {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)},
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
