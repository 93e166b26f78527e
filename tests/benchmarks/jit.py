"""Compiled programs beside NumPy and numba: `python -m tests.benchmarks.jit [--json FILE]` in the project's folder.

Times are the shortest of several runs, taken in turns, so that whatever else the machine does meets both. The figures of
`docs/performance.md` are drawn from the file.
"""

import argparse
import json
import time

import numba
import numpy as np

import fnad

rng = np.random.default_rng(0)


def shortest(*functions, seconds=0.3):
    """The shortest run of each, in seconds."""
    best = [float("inf")] * len(functions)
    for f in functions:
        f()
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end:
        for k, f in enumerate(functions):
            start = time.perf_counter()
            f()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def chain(x):
    return np.tanh(x) * np.exp(-x * x) + 0.5 * x


def sizes():
    """A chain of elementwise functions, by the number of entries."""
    f = fnad.jit(chain)
    for n in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000):
        x = rng.normal(size=n)
        eager, compiled = shortest(lambda x=x: chain(x), lambda x=x: f(x))
        yield {"n": n, "numpy": eager, "fnad": compiled}


def products():
    """Square float32 matrix products, in operations per second."""
    f = fnad.jit(np.matmul)
    for n in (8, 16, 32, 64, 128, 256, 512, 1024):
        a, b = (rng.normal(size=(n, n)).astype(np.float32) for _ in range(2))
        eager, compiled = shortest(lambda a=a, b=b: a @ b, lambda a=a, b=b: f(a, b))
        yield {"n": n, "numpy": 2 * n**3 / eager, "fnad": 2 * n**3 / compiled}


def epilogues():
    """Seconds of `relu(a @ b + c)` in one program, where it is computed piece by piece, and in two, one after the other."""
    whole, product, chain = (fnad.jit(f) for f in (lambda a, b, c: np.maximum(a @ b + c, 0), np.matmul, lambda z, c: np.maximum(z + c, 0)))
    for dtype in (np.float32, np.float64):
        for m, k, n in ((64, 784, 128), (256, 1024, 1024), (1024, 256, 1024), (4096, 64, 1024), (4096, 1024, 1024)):
            a, b, c = (rng.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))
            one, two = shortest(lambda a=a, b=b, c=c: whole(a, b, c), lambda a=a, b=b, c=c: chain(product(a, b), c))
            yield {"bytes": a.itemsize, "m": m, "k": k, "n": n, "one": one, "two": two}


def adam():
    """Bytes per second of an Adam update of ten million parameters in 20 leaves, and of a plain copy."""
    params = [rng.normal(size=500_000).astype(np.float32) for _ in range(20)]
    grads = [rng.normal(size=500_000).astype(np.float32) for _ in range(20)]
    optimizer = fnad.optim.adam(1e-3)
    state = optimizer.init(params)

    def update(params, state, grads):
        updates, state = optimizer.update(grads, state, params)
        return fnad.optim.apply_updates(params, updates), state

    step = fnad.jit(update, donate_argnums=(0, 1))
    held = [params, state]

    def run():
        held[:] = step(*held, grads)

    source, target = np.ones(10_000_000, np.float32), np.ones(10_000_000, np.float32)
    updated, copied = shortest(run, lambda: np.copyto(target, source), seconds=1)
    yield {"adam": 7 * 4e7 / updated, "copy": 2 * 4e7 / copied}


def recurrence(x, y):
    def step(h, u):
        h = np.sin(h * 0.9 + u) + 0.1 * h * h
        return h, None

    h, _ = fnad.scan(step, x, y)
    return h


@numba.njit
def by_hand(x, y):
    h = x
    for u in y:
        h = np.sin(h * 0.9 + u) + 0.1 * h * h
    return h


@numba.njit
def gradient_by_hand(x, y, states, out):
    h = x
    for i in range(y.size):
        states[i] = h
        h = np.sin(h * 0.9 + y[i]) + 0.1 * h * h
    g = 1.0
    for i in range(y.size - 1, -1, -1):
        c = np.cos(states[i] * 0.9 + y[i])
        out[i] = g * c
        g = g * (0.9 * c + 0.2 * states[i])
    return g


def loops():
    """A scan of 10,000 scalar steps and its gradient, beside the same loops written for numba."""
    y = 0.1 * rng.normal(size=10_000)
    states, out = np.empty_like(y), np.empty_like(y)
    value, gradient = fnad.jit(recurrence), fnad.jit(fnad.grad(recurrence, (0, 1)))
    np.testing.assert_allclose(value(0.5, y), by_hand(0.5, y), rtol=1e-9)
    np.testing.assert_allclose(gradient(0.5, y)[0], gradient_by_hand(0.5, y, states, out), rtol=1e-6, atol=1e-300)
    names = ("numba", "fnad", "numba, gradient", "fnad, gradient")
    runs = (lambda: by_hand(0.5, y), lambda: value(0.5, y), lambda: gradient_by_hand(0.5, y, states, out), lambda: gradient(0.5, y))
    yield dict(zip(names, shortest(*runs), strict=True))


def first_calls():
    """Seconds until the first result of a training step, by the number of layers; nothing is on disk."""
    fnad.clear_cache()
    for layers in (1, 2, 4, 8, 16, 32):
        params = [{"w": rng.normal(size=(64, 64)) / 8, "b": np.zeros(64)} for _ in range(layers)]

        def loss(params, x):
            for p in params:
                x = np.tanh(x @ p["w"] + p["b"])
            return np.mean(x * x)

        optimizer = fnad.optim.adam(1e-3)

        def step(params, state, x, loss=loss, optimizer=optimizer):
            grads = fnad.grad(loss)(params, x)
            updates, state = optimizer.update(grads, state, params)
            return fnad.optim.apply_updates(params, updates), state

        state, x = optimizer.init(params), rng.normal(size=(32, 64))
        start = time.perf_counter()
        fnad.jit(step)(params, state, x)
        yield {"layers": layers, "seconds": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the measurements to a file")
    wanted = parser.parse_args()
    found = {}
    for part in (sizes, products, epilogues, adam, loops, first_calls):
        print(part.__doc__)
        found[part.__name__] = []
        for row in part():
            found[part.__name__].append(row)
            print("  ", "  ".join(f"{k}: {v:.4g}" for k, v in row.items()))
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
