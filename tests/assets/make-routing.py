"""Records which experts the upcycled SmolLM2 picks, by a plain float32 forward pass in numpy.

llama.cpp does not show its routing. That this pass computes the same model is checked first: its
log-probabilities must equal those that llama.cpp gave for the float32 file, since equal experts change nothing.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

from reference_cases import MOE_PROMPTS

TOLERANCE = 1e-3  # of a log-probability; 2e-4 is seen
CLOSE = 1e-3  # router logits nearer than this may be ranked differently by another engine


class Model:
    """Weights as float32, and the few numbers of the architecture."""

    def __init__(self, path: Path):
        reader = GGUFReader(path)
        self.weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
        key = lambda name: reader.fields[f"llama.{name}"].contents()  # noqa: E731
        self.blocks = key("block_count")
        self.heads, self.kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        self.epsilon, self.rope_base = key("attention.layer_norm_rms_epsilon"), key("rope.freq_base")
        self.experts_used = key("expert_used_count")

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = 1.0 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        return x * scale.astype(np.float32) * self.weights[f"{name}.weight"]

    def rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotary embedding of [tokens, heads, width] on neighbouring pairs, the order llama GGUFs keep."""
        tokens, _, width = x.shape
        frequency = float(self.rope_base) ** (-np.arange(0, width, 2) / width)
        angle = np.arange(tokens)[:, None, None] * frequency
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        even, odd = x[..., 0::2], x[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)

    def attention(self, x: np.ndarray, block: str) -> np.ndarray:
        tokens = len(x)
        q, k, v = (x @ self.weights[f"{block}.attn_{part}.weight"].T for part in "qkv")
        q = self.rotate(q.reshape(tokens, self.heads, -1))
        k = self.rotate(k.reshape(tokens, self.kv_heads, -1))
        group = self.heads // self.kv_heads
        k = np.repeat(k, group, axis=1)
        v = np.repeat(v.reshape(tokens, self.kv_heads, -1), group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
        scores = np.where(np.tri(tokens, dtype=bool), scores, np.float32(-np.inf))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", scores, v).reshape(tokens, -1)
        return mixed @ self.weights[f"{block}.attn_output.weight"].T

    def feed_forward(self, x: np.ndarray, block: str) -> tuple[np.ndarray, np.ndarray]:
        """The mixture's output and the router's logits [tokens, experts]."""
        logits = x @ self.weights[f"{block}.ffn_gate_inp.weight"].T
        chosen = np.argsort(-logits, axis=-1, kind="stable")[:, : self.experts_used]
        share = np.exp(np.take_along_axis(logits, chosen, -1) - logits.max(axis=-1, keepdims=True))
        share /= share.sum(axis=-1, keepdims=True)
        out = np.zeros_like(x)
        for expert in range(logits.shape[-1]):
            token, slot = np.nonzero(chosen == expert)
            gate, up, down = (self.weights[f"{block}.ffn_{p}_exps.weight"][expert] for p in ("gate", "up", "down"))
            hidden = x[token] @ gate.T
            hidden = hidden / (1 + np.exp(-hidden)) * (x[token] @ up.T)
            out[token] += share[token, slot][:, None] * (hidden @ down.T)
        return out, logits

    def forward(self, tokens: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities [tokens, vocabulary] and router logits [blocks, tokens, experts]."""
        x = self.weights["token_embd.weight"][tokens]
        routing = []
        for number in range(self.blocks):
            block = f"blk.{number}"
            x = x + self.attention(self.norm(x, f"{block}.attn_norm"), block)
            out, logits = self.feed_forward(self.norm(x, f"{block}.ffn_norm"), block)
            x = x + out
            routing.append(logits)
        logits = (self.norm(x, "output_norm") @ self.weights["token_embd.weight"].T).astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)), np.stack(routing)


def deviation(log_probabilities: np.ndarray, case: dict) -> float:
    start = len(case["prompt_tokens"]) - 1
    rows = [(start + k, top) for k, top in enumerate(case["top"]) if top]
    return max(abs(log_probabilities[at, token] - value) for at, top in rows for token, value in top)


def routes(logits: np.ndarray, used: int) -> dict:
    ranked = -np.sort(-logits, axis=-1)
    chosen = np.sort(np.argsort(-logits, axis=-1, kind="stable")[..., :used], axis=-1)
    close = np.argwhere(ranked[..., used - 1] - ranked[..., used] < CLOSE)
    return {
        "close": close.tolist(),
        "experts": [" ".join("".join(map(str, pair)) for pair in block) for block in chosen],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe", type=Path)
    parser.add_argument("reference", type=Path, help="smollm2-f32.json")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    model = Model(args.moe)
    cases = json.loads(args.reference.read_text())["prompts"]
    prompts, counts = {}, 0
    for name in MOE_PROMPTS:
        tokens = cases[name]["prompt_tokens"] + cases[name]["tokens"][:-1]
        log_probabilities, logits = model.forward(tokens)
        found = deviation(log_probabilities, cases[name])
        if not found < TOLERANCE:
            sys.exit(f"make-routing: {name} deviates from llama.cpp by {found:.2g} in a log-probability")
        prompts[name] = {"deviation": float(f"{found:.1g}"), "tokens": tokens, **routes(logits, model.experts_used)}
        counts = counts + np.bincount(np.argsort(-logits, -1)[..., : model.experts_used].ravel(), minlength=4)
    head = {
        "tool": f"float32 forward pass in numpy {np.__version__}",
        "command": "tests/assets/make-reference.sh --out tests/assets/reference",
        "model": args.moe.name,
        "columns": "tokens: fed to the model; experts: per block, each token's experts in rising order; "
        f"close: [block, token] where the last chosen and the first rejected router logit lie within {CLOSE}; "
        "deviation: largest difference of a log-probability from llama.cpp on the float32 file",
        "load": counts.tolist(),
    }
    lines = [f"{json.dumps(k)}:{json.dumps(v)},\n" for k, v in head.items()]
    body = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in prompts.items())
    part = args.out.with_name(f".{args.out.name}.part")
    part.write_text("{\n" + "".join(lines) + '"prompts":{\n' + body + "\n}\n}\n")
    part.replace(args.out)
    print(args.out)


if __name__ == "__main__":
    main()
