"""Upcycles a dense llama GGUF to a mixture of experts with equal experts.

Every expert is a byte copy of the dense feed-forward block and the router's top-k weights are normalised to sum
to one, so the mixture computes what the dense model computes, while the routing itself is real: it follows from
router weights drawn from a fixed seed.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter

import gguf_copy
import splitmix

FEED_FORWARD = re.compile(r"blk\.(\d+)\.ffn_(gate|up|down)\.weight")


def router(seed: int, block: int, shape: tuple[int, int], std: float) -> np.ndarray:
    """Uniform weights of standard deviation `std` with 24 random bits each, so that every machine gets the same."""
    experts, width = shape
    draws = splitmix.u64(seed, experts * width, block * experts * width) >> np.uint64(40)
    centred = draws.astype(np.float64) * 2.0**-23 - 1.0
    return (centred * (std * 3.0**0.5)).astype(np.float32).reshape(shape)


def scaled(tensor, factor: float) -> np.ndarray:
    """The tensor's bytes with every block's float16 scale and minimum (Q4_1) or each value (F32) times `factor`."""
    data = np.array(tensor.data)
    if tensor.tensor_type == GGMLQuantizationType.F32:
        return data * np.float32(factor)
    if tensor.tensor_type != GGMLQuantizationType.Q4_1:
        sys.exit(f"upcycle-moe: cannot scale {tensor.name}: it is {tensor.tensor_type.name}, not Q4_1 or F32")
    blocks = data.reshape(-1, 20)  # Q4_1: d and m as float16, then 32 values of 4 bits
    header = blocks[:, :4].copy().view(np.float16).astype(np.float32) * np.float32(factor)
    if np.abs(header).max() > np.finfo(np.float16).max:
        sys.exit(f"upcycle-moe: a scale of {tensor.name} leaves the range of float16; use a smaller --perturb-scale")
    blocks[:, :4] = header.astype(np.float16).view(np.uint8)
    return blocks.reshape(data.shape)


def add_tensors(reader: GGUFReader, writer: GGUFWriter, args: argparse.Namespace) -> None:
    for tensor in reader.tensors:
        match = FEED_FORWARD.fullmatch(tensor.name)
        if match is None:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        block, part = int(match[1]), match[2]
        experts = [tensor.data] * args.experts
        if part == "down" and args.perturb_expert is not None:
            # The block's output is linear in the down projection, so this scales the expert's whole output.
            experts[args.perturb_expert] = scaled(tensor, args.perturb_scale)
        writer.add_tensor(f"blk.{block}.ffn_{part}_exps.weight", np.stack(experts), raw_dtype=tensor.tensor_type)
        if part == "gate":
            shape = (args.experts, int(tensor.shape[0]))
            writer.add_tensor(f"blk.{block}.ffn_gate_inp.weight", router(args.seed, block, shape, args.router_std))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dense", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--experts", type=int, default=4)
    parser.add_argument("--experts-used", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20250207, help="of the router weights")
    parser.add_argument("--router-std", type=float, default=0.05, help="standard deviation of the router weights")
    parser.add_argument("--perturb-expert", type=int, metavar="N", help="scale expert N's output in every block")
    parser.add_argument("--perturb-scale", type=float, default=0.5, help="its factor (a power of two is exact)")
    args = parser.parse_args()
    if not 1 <= args.experts_used <= args.experts:
        parser.error("--experts-used must lie between 1 and --experts")
    if args.perturb_expert is not None and not 0 <= args.perturb_expert < args.experts:
        parser.error(f"--perturb-expert must lie between 0 and {args.experts - 1}")
    return args


def main() -> None:
    args = parse()
    reader = GGUFReader(args.dense)
    architecture = reader.fields["general.architecture"].contents()
    if architecture != "llama":
        sys.exit(f"upcycle-moe: {args.dense} has architecture {architecture}; only llama can be upcycled")
    writer = gguf_copy.start(reader, args.out)
    writer.add_expert_count(args.experts)
    writer.add_expert_used_count(args.experts_used)
    add_tensors(reader, writer, args)
    gguf_copy.finish(writer, args.out)


if __name__ == "__main__":
    main()
