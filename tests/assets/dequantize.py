"""Dequantises every tensor of a GGUF to float32; the metadata stays.

With float32 weights no engine rounds activations, so two correct engines agree closely; README.md has figures.
"""

import argparse
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, LlamaFileType
from gguf.quants import dequantize

import gguf_copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quantised", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    reader = GGUFReader(args.quantised)
    writer = gguf_copy.start(reader, args.out, without=("general.file_type",))
    writer.add_file_type(LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        writer.add_tensor(tensor.name, values, raw_dtype=GGMLQuantizationType.F32)
    gguf_copy.finish(writer, args.out)


if __name__ == "__main__":
    main()
