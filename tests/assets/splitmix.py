"""SplitMix64 (Steele, Lea, Flood 2014) as a counter: draw k depends on the seed and k alone.

    state_k = seed + (k + 1) * 0x9E3779B97F4A7C15                  (all arithmetic modulo 2^64, k = 0, 1, ...)
    z = (state_k ^ (state_k >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    u64_k = z ^ (z >> 31)
"""

import numpy as np


def u64(seed: int, count: int, skip: int = 0) -> np.ndarray:
    """Draws `skip` .. `skip + count` of the stream `seed`."""
    k = np.arange(skip + 1, skip + count + 1, dtype=np.uint64)
    z = np.uint64(seed) + k * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def normals(seed: int, count: int, skip: int = 0) -> np.ndarray:
    """`count` (even) standard normals in float64 from draws `skip` .. `skip + count`, by Box-Muller:

    draws a, b give  u = ((a >> 11) + 1) * 2^-53  in (0, 1],  v = (b >> 11) * 2^-53  in [0, 1),
    r = sqrt(-2 ln u),  and the next two normals  r cos(2 pi v),  r sin(2 pi v).
    """
    draws = u64(seed, count, skip) >> np.uint64(11)
    u = (draws[0::2].astype(np.float64) + 1.0) * 2.0**-53
    v = draws[1::2].astype(np.float64) * 2.0**-53
    radius = np.sqrt(-2.0 * np.log(u))
    angle = (2.0 * np.pi) * v
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
