"""Records what llama.cpp makes of SmolLM2: tokens, greedy continuations and their log-probabilities."""

import argparse
import hashlib
import json
import struct
import sys
from pathlib import Path

from llama_server import LlamaServer, tool
from reference_cases import MOE_PROMPTS, PROMPTS, STRINGS

OUTPUT_TOKENS = 32
TOP = 5
COLUMNS = (
    "tokens: generated, with the end-of-sequence token where stop is eos; top: per generated token, the most likely "
    "tokens as [id, natural log-probability], null where the server gives none (a token ending inside a character)"
)


def short(value: float) -> float:
    """The decimal with the fewest digits that names the same float32 (what the server computes in)."""
    exact = struct.pack("f", value)
    return next(v for digits in range(1, 10) if struct.pack("f", v := float(f"{value:.{digits}g}")) == exact)


def continuation(server: LlamaServer, prompt: str) -> dict:
    ids = server.tokenize(prompt, parse_special=True)
    answer = server.post(
        "/completion",
        {
            "prompt": ids,
            "n_predict": OUTPUT_TOKENS,
            "temperature": 0,
            "samplers": ["temperature"],
            "n_probs": TOP,
            "return_tokens": True,
            "cache_prompt": False,
        },
    )
    if answer["tokens_evaluated"] != len(ids):
        sys.exit(f"make-reference: llama.cpp did not evaluate all tokens of {prompt!r}")
    return {
        "prompt": prompt,
        "prompt_tokens": ids,
        "tokens": answer["tokens"],
        "text": answer["content"],
        "stop": answer["stop_type"],
        "top": aligned(answer["tokens"], answer["completion_probabilities"]),
    }


def aligned(generated: list[int], reported: list[dict]) -> list[list | None]:
    """One entry a generated token. The server reports none for a token that ends inside a UTF-8 character."""
    queue = list(reported)
    rows = []
    for token in generated:
        if queue and queue[0]["id"] == token:
            rows.append([[t["id"], short(t["logprob"])] for t in queue.pop(0)["top_logprobs"]])
        else:
            rows.append(None)
    unreported = {token for token, row in zip(generated, rows) if row is None}
    if queue or unreported & {p["id"] for p in reported}:
        sys.exit("make-reference: cannot tell which tokens llama.cpp's probabilities belong to")
    return rows


def continuations(model: Path, names: list[str]) -> dict:
    server = LlamaServer(model, threads=1, context=2048, exact=True)
    first, second = ({n: continuation(server, PROMPTS[n]) for n in names} for _ in range(2))
    if first != second:
        sys.exit("make-reference: two runs of llama.cpp differ")
    return {
        **header(model),
        "settings": server.settings
        | {"temperature": 0, "output_tokens": OUTPUT_TOKENS, "ignore_eos": False, "cache_prompt": False},
        "columns": COLUMNS,
        "prompts": first,
    }


def tokens(model: Path) -> dict:
    server = LlamaServer(model, threads=1, context=2048, exact=True)
    rows = []
    for text in STRINGS:
        row = {"text": text, "ids": server.tokenize(text, parse_special=True)}
        plain = server.tokenize(text, parse_special=False)
        if plain != row["ids"]:
            row["ids_without_special"] = plain
        rows.append(row)
    columns = (
        "ids: special tokens in the text recognised, none added; "
        "ids_without_special: the same with special tokens taken as plain text, where that differs"
    )
    return {**header(model), "columns": columns, "strings": rows}


def header(model: Path) -> dict:
    with open(model, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    command = "tests/assets/make-reference.sh --out tests/assets/reference"
    return {**tool(), "command": command, "model": model.name, "model_sha256": digest}


def write(folder: Path, name: str, value: dict) -> None:
    """One line an entry of the last field, so that a change shows as the lines that changed."""
    *head, (last, entries) = value.items()
    dump = lambda v: json.dumps(v, ensure_ascii=True, separators=(",", ":"))  # noqa: E731
    if isinstance(entries, dict):
        body, brackets = [f"{dump(k)}:{dump(v)}" for k, v in entries.items()], "{}"
    else:
        body, brackets = [dump(v) for v in entries], "[]"
    lines = [f"{dump(k)}:{dump(v)}," for k, v in head] + [f"{dump(last)}:{brackets[0]}", ",\n".join(body)]
    text = "{\n" + "\n".join(lines) + f"\n{brackets[1]}\n}}\n"
    assert json.loads(text) == value
    part = folder / f".{name}.part"
    part.write_text(text)
    part.replace(folder / name)
    print(folder / name)


def compare(dense: dict, moe: dict) -> str:
    """Where the mixture of equal experts first leaves the dense model's tokens, and how close a call that was."""
    parts = []
    for name, entry in moe["prompts"].items():
        expected = dense["prompts"][name]
        pairs = enumerate(zip(entry["tokens"], expected["tokens"]))
        at = next((k for k, (got, want) in pairs if got != want), None)
        if at is None:
            parts.append(f"{name}: equal")
        else:
            first, second = expected["top"][at][:2]
            parts.append(f"{name}: differs from position {at} on, where the dense gap is {first[1] - second[1]:.4f}")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dense", type=Path)
    parser.add_argument("moe", type=Path)
    parser.add_argument("f32", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON files")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out, "smollm2-tokens.json", tokens(args.dense))
    dense = continuations(args.dense, list(PROMPTS))
    write(args.out, "smollm2-q4_1.json", dense)
    write(args.out, "smollm2-f32.json", continuations(args.f32, list(PROMPTS)))
    moe = continuations(args.moe, MOE_PROMPTS)
    verdict = compare(dense, moe)
    prompts = moe.pop("prompts")
    write(args.out, "smollm2-moe.json", {**moe, "against_dense": verdict, "prompts": prompts})
    print(verdict, file=sys.stderr)


if __name__ == "__main__":
    main()
