"""Loops of 10,000 scalar steps: fnad.jit against the same loops written by hand in numba, as ratios; with --jax against jax.jit.

python tests/benchmarks/loops.py [--jax PYTHON]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

import numba
import numpy as np

import fnad

STEPS = 10_000

JAX = """
import json, time, sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
lax, STEPS = jax.lax, {steps}
xs = np.sin(np.arange(STEPS) * 0.37)
def total(w, xs):
    def body(c, x):
        c = lax.cond(c > 0.5, lambda c: c * w + 0.1 * x, lambda c: c + x * x * w, c)
        return c, None
    return lax.scan(body, jnp.float64(0.0), xs)[0]
def halve(x):
    return lax.while_loop(lambda c: c[0] < {steps}, lambda c: (c[0] + 1, c[1] - 0.01 * (c[1] * c[1] - x) / (c[1] + 1.0)), (0, x))[1]
def best(f, *args):
    f(*args)[0].block_until_ready() if isinstance(f(*args), tuple) else f(*args).block_until_ready()
    out = []
    for _ in range(20):
        t = time.perf_counter(); r = f(*args); jax.block_until_ready(r); out.append(time.perf_counter() - t)
    return min(out)
print(json.dumps([best(jax.jit(total), 0.9, xs), best(jax.jit(jax.value_and_grad(total)), 0.9, xs), best(jax.jit(halve), 2.0)]))
"""


def total(w, xs):
    def body(c, x):
        return fnad.cond(c > 0.5, lambda c: c * w + 0.1 * x, lambda c: c + x * x * w, c), None

    return fnad.scan(body, 0.0, xs)[0]


def halve(x):
    step = lambda c: (c[0] + 1, c[1] - 0.01 * (c[1] * c[1] - x) / (c[1] + 1.0))
    return fnad.while_loop(lambda c: c[0] < STEPS, step, (0, x))[1]


@numba.njit
def numba_total(w, xs):
    c = 0.0
    for x in xs:
        c = c * w + 0.1 * x if c > 0.5 else c + x * x * w
    return c


@numba.njit
def numba_total_and_grad(w, xs):
    saved = np.empty(len(xs))
    c = 0.0
    for i, x in enumerate(xs):
        saved[i] = c
        c = c * w + 0.1 * x if c > 0.5 else c + x * x * w
    g, gw = 1.0, 0.0
    for i in range(len(xs) - 1, -1, -1):
        if saved[i] > 0.5:
            gw += g * saved[i]
            g *= w
        else:
            gw += g * xs[i] * xs[i]
    return c, gw


@numba.njit(error_model="numpy")
def numba_halve(x):
    i, c = 0, x
    while i < STEPS:
        i, c = i + 1, c - 0.01 * (c * c - x) / (c + 1.0)
    return c


def best(f, *args):
    f(*args)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", help="a Python with JAX")
    jax = parser.parse_args().jax
    xs = np.sin(np.arange(STEPS) * 0.37)
    rows = [
        ("scan with a cond", fnad.jit(total), numba_total, (0.9, xs)),
        ("its value and gradient", fnad.jit(fnad.value_and_grad(total)), numba_total_and_grad, (0.9, xs)),
        ("while_loop", fnad.jit(halve), numba_halve, (2.0,)),
    ]
    for _, ours, theirs, args in rows:
        np.testing.assert_allclose(ours(*args), theirs(*args), rtol=1e-10)
    peer = json.loads(subprocess.run([jax, "-c", JAX.format(steps=STEPS)], capture_output=True, check=True).stdout) if jax else [None] * 3
    for (name, ours, theirs, args), other in zip(rows, peer, strict=True):
        a, b = best(ours, *args), best(theirs, *args)
        against = f", {a / other:.2f} x jax ({other * 1e6:.0f} us)" if other else ""
        print(f"{name}: {a * 1e6:.0f} us, {a / b:.2f} x numba ({b * 1e6:.0f} us){against}")


if __name__ == "__main__":
    main()
