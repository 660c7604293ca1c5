"""Golden values of FP8 E4M3 quantisation from ml_dtypes and numpy, independent of the project's own code.

The matrices are not stored: GENERATOR and the rows' recipes, written into the file, say how to make them.
Integers and uniforms are exact on every machine; ln, sin and cos of float64 may differ in the last bit between
mathematics libraries, which moves a float32 by one unit now and then and no statistic in its printed digits.
"""

import argparse
import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np

import splitmix

MAX = np.float32(448.0)
ROWS, COLUMNS = 1024, 4096
# The first two share a 1x128 group, so one of them is not its group's amax (which is exact up to rounding): with
# six groups the 1x128 row would read 53 dB.
LOUD = [5, 77, 1333, 2048, 2900, 4095]
STATISTICS = {
    "scale": "amax / 448 of the group in float32 (amax / 4 / 448 for scale_from: amax/4); 1 where amax is 0",
    "quantise": "q = x / scale in float32, code = E4M3 nearest-even of q clamped to [-448, 448]; "
    "x' = value(code) * scale in float32; all sums below in float64 over the whole matrix",
    "rel_l2": "sqrt(sum (x'-x)^2 / sum x^2)",
    "sqnr_db": "10 log10(sum x^2 / sum (x'-x)^2)",
    "sqnr_channel_p50": "median over the 4096 columns (mean of the middle two) of the column's sqnr_db",
    "saturated": "count of |q| > 448; with scale from amax a few stand for an amax whose x / scale rounds up",
    "clipped": "count of |q| > 464, the values that lose more than nearest-even rounding to 448 would take",
    "underflow": "count of x != 0 with code 0 or 128",
    "max_abs_err": "max |x'-x|",
    "shares": "counts divided by 1024 * 4096",
}
GENERATOR = splitmix.__doc__ + "\n" + splitmix.normals.__doc__


def encode(values: np.ndarray) -> np.ndarray:
    """E4M3 codes of float32 values, to nearest even, saturating (infinities too); NaN keeps its sign."""
    with np.errstate(invalid="ignore"):
        return np.clip(values, -MAX, MAX).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def decode(codes: np.ndarray) -> np.ndarray:
    return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)


def formula(code: int) -> float:
    """The value of a code after arXiv 2209.05433, to check ml_dtypes by."""
    sign, exponent, mantissa = -1.0 if code & 0x80 else 1.0, (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return sign * magnitude


def nearest(value: np.float32) -> int:
    """The code of a finite float32 by search over all codes, ties to the even one."""
    magnitude = abs(float(value))
    code = min(range(127), key=lambda c: (abs(formula(c) - magnitude), c & 1))
    return code | (0x80 if np.signbit(value) else 0)


def code_values() -> list[float | None]:
    values = decode(np.arange(256, dtype=np.uint8))
    for code, value in enumerate(values):
        expected = formula(code)
        assert (math.isnan(expected) and np.isnan(value)) or (
            expected == value and math.copysign(1, expected) == math.copysign(1, value)
        ), code
    return [None if np.isnan(v) else float(v) for v in values]


def vectors() -> list[list[int]]:
    """Pairs of float32 bits and code."""
    finite = np.abs(decode(np.arange(127, dtype=np.uint8)))
    ties = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    tiny = np.float32(2.0**-149)
    signed = np.concatenate([
        finite[[0, 1, 2, 7, 8, 9, 15, 16, 64, 119, 125, 126]],
        ties[::3], np.nextafter(ties[1::6], np.float32(0)), np.nextafter(ties[2::6], np.float32(np.inf)),
        ties[:8], np.nextafter(ties[:8], np.float32(0)), np.nextafter(ties[:8], np.float32(1)),
        np.array([tiny, 2.0**-126, 1e-30, 1e-6, 2.0**-11, 2.0**-10, 3 * 2.0**-11, 0.1, 0.3, 1 / 3], np.float32),
        np.array([440, 447.99997, 448, 448.00003, 455, 463.99997, 464, 464.00003, 480, 512, 1e4, 3.4e38], np.float32),
        np.array([np.inf], np.float32),
    ])  # fmt: skip
    random = splitmix.normals(11, 120) * np.exp2(splitmix.normals(12, 120) * 4)
    values = np.concatenate([signed, -signed, random.astype(np.float32)])
    codes = encode(values)
    for value, code in zip(values, codes):
        assert code == nearest(np.clip(value, -MAX, MAX)), value
    pairs = zip(values.view(np.uint32).tolist(), codes.tolist())
    return [list(p) for p in dict.fromkeys(pairs)] + [[0x7FC00000, 0x7F], [0xFFC00000, 0xFF]]


def normal_matrix(seed: int) -> np.ndarray:
    return splitmix.normals(seed, ROWS * COLUMNS).reshape(ROWS, COLUMNS)


def student_t() -> np.ndarray:
    z = splitmix.normals(2, 4 * ROWS * COLUMNS).reshape(ROWS, COLUMNS, 4)
    return z[..., 0] / np.sqrt((z[..., 1] ** 2 + z[..., 2] ** 2 + z[..., 3] ** 2) / 3.0)


def loud_channels() -> np.ndarray:
    x = normal_matrix(3)
    x[:, LOUD] *= 300.0
    return x


def loud_rows() -> np.ndarray:
    return normal_matrix(4) * np.exp(1.5 * splitmix.normals(5, ROWS))[:, None]


# name -> (recipe, matrix in float64)
INPUTS = {
    "normal": ("normals of seed 10, row-major", lambda: normal_matrix(10)),
    "student_t3": (
        "z0 / sqrt((z1^2 + z2^2 + z3^2) / 3) of four successive normals of seed 2 a value, row-major",
        student_t,
    ),
    "loud_channels": (f"normals of seed 3, row-major; columns {LOUD} times 300", loud_channels),
    "lognormal_rows": ("normals of seed 4, row-major; row r times exp(1.5 g_r), g = normals of seed 5", loud_rows),
}
# granularity -> (rows, columns) of a group
GROUPS = {"tensor": (ROWS, COLUMNS), "row": (1, COLUMNS), "1x128": (1, 128), "128x128": (128, 128)}


def expand(scale: np.ndarray, group: tuple[int, int]) -> np.ndarray:
    return np.repeat(np.repeat(scale, group[0], axis=0), group[1], axis=1)


def decibels(signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return 10.0 * np.log10(signal / noise)


def statistics(x: np.ndarray, group: tuple[int, int], divisor: float) -> dict:
    blocks = np.abs(x).reshape(ROWS // group[0], group[0], COLUMNS // group[1], group[1])
    amax = blocks.max(axis=(1, 3))
    scale = np.where(amax == 0, np.float32(1), amax / np.float32(divisor) / MAX)
    full = expand(scale, group)
    q = x / full
    codes = encode(q)
    restored = decode(codes) * full
    assert full.dtype == q.dtype == restored.dtype == np.float32
    square = x.astype(np.float64) ** 2
    error = restored.astype(np.float64) - x
    noise = error**2
    saturated = int(np.count_nonzero(np.abs(q) > MAX))
    underflow = int(np.count_nonzero((codes & 0x7F == 0) & (x != 0)))
    return {
        "rel_l2": round(math.sqrt(noise.sum() / square.sum()), 7),
        "sqnr_db": round(float(decibels(square.sum(), noise.sum())), 4),
        "sqnr_channel_p50": round(float(np.median(decibels(square.sum(0), noise.sum(0)))), 4),
        "saturated": saturated,
        "saturated_share": float(f"{saturated / x.size:.4g}"),
        "clipped": int(np.count_nonzero(np.abs(q) > 464)),
        "underflow": underflow,
        "underflow_share": float(f"{underflow / x.size:.4g}"),
        "max_abs_err": float(f"{np.abs(error).max():.7g}"),
        "amax": float(f"{np.abs(x).max():.9g}"),
    }


def golden_rows() -> list[dict]:
    rows = []
    for name, (recipe, make) in INPUTS.items():
        x = make().astype(np.float32)
        head = {"input": name, "recipe": recipe + "; computed in float64, then rounded to float32"}
        head |= {"first": [float(f"{v:.9g}") for v in x.flat[:4]], "last": float(f"{x.flat[-1]:.9g}")}
        for granularity, group in GROUPS.items():
            rows.append({**head, "granularity": granularity, "scale_from": "amax", **statistics(x, group, 1.0)})
        if name == "normal":
            rows.append(
                {**head, "granularity": "tensor", "scale_from": "amax/4", **statistics(x, GROUPS["tensor"], 4.0)}
            )
    return rows


def lines(values: list) -> str:
    return ",\n".join(json.dumps(v, separators=(",", ":")) for v in values)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the golden values of FP8 E4M3 quantisation.")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    head = {
        "tool": f"ml_dtypes {ml_dtypes.__version__} float8_e4m3fn, numpy {np.__version__}",
        "command": "tests/assets/fp8-golden.sh --out tests/assets/reference",
        "columns": "values: of the codes 0 to 255, null for NaN; vectors: float32 bits and E4M3 code in turn, "
        "nearest even, finite and infinite values beyond 448 saturating; rows: see statistics",
        "shape": [ROWS, COLUMNS],
        "generator": GENERATOR,
        "statistics": STATISTICS,
        "values": code_values(),
    }
    text = "{\n" + "".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))},\n" for k, v in head.items())
    pairs = vectors()
    packed = [sum(pairs[i : i + 8], []) for i in range(0, len(pairs), 8)]
    body = ",\n".join(json.dumps(p, separators=(",", ":"))[1:-1] for p in packed)
    text += f'"vectors":[\n{body}\n],\n"rows":[\n{lines(golden_rows())}\n]\n}}\n'
    json.loads(text)
    args.out.write_text(text)


if __name__ == "__main__":
    main()
