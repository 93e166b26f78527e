"""Nanoseconds per element of loops around the mathematical functions, beside NumPy and SciPy.

Run it as `python -m tests.benchmarks.scalar_functions` in the project's folder. The arrays fit into the cache, and one
core is used. "fast" is the loop without the parts for huge arguments of sin, cos, tan and remainder.
"""

import time

import numpy as np
import scipy.special

from fnad.kernels import scalar
from fnad.kernels.codegen.expr import DTYPES
from fnad.kernels.codegen.graph import split_rare
from tests.kernels.loops import Loop

SIZE = 16384
NAMES = [
    *("exp", "expm1", "exp2", "log", "log1p", "log2", "tanh", "sigmoid", "softplus", "sin", "cos", "tan"),
    *("erf", "erfc", "ndtr", "erfinv", "arcsin", "arctan", "sinh", "arcsinh", "cbrt"),
]
PAIRS = ["power", "arctan2", "hypot", "logaddexp", "remainder"]


def best(function, repeats=100):
    """The shortest of many runs, in nanoseconds per element."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) / SIZE * 1e9


def main():
    rng = np.random.default_rng(0)
    print(f"{'function':<12}{'dtype':<7}{'fnad':>8}{'fast':>8}{'NumPy':>9}")
    for name in NAMES + PAIRS:
        function = getattr(scalar, name)
        peer = getattr(np, name, None) or getattr(scipy.special, {"sigmoid": "expit"}.get(name, name), None)
        for dtype in ("f64", "f32"):
            count = 2 if name in PAIRS else 1
            x = [(0.01 + 0.9 * rng.random(SIZE)).astype(DTYPES[dtype]) for _ in range(count)]
            out = np.empty_like(x[0])
            loop = Loop(function, *[dtype] * count).bound(*x)
            fast = Loop(lambda *a, f=function: split_rare([f(*a)])[0][0], *[dtype] * count).bound(*x)
            row = f"{name:<12}{dtype:<7}{best(loop):8.2f}{best(fast):8.2f}"
            print(row + (f"{best(lambda p=peer, x=x, out=out: p(*x, out=out), 20):9.2f}" if peer else ""))


if __name__ == "__main__":
    main()
