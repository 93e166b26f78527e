"""The temperature a rod had, from what is left of it: the gradient of a numba loop with two swapped buffers.

    python examples/heat_inverse.py [--iterations 400] [--steps 60] [--points 101] [--seed 0] [--out heat]

A rod is held at zero at both ends and cools. Measured, with noise, is its temperature after `--steps` steps. Found is the profile at the
start that explains it: least squares with a penalty on the roughness, by Adam on gradients through all steps. Saved is a plot.
"""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import trange

import fnad


@fnad.njit
def heat(u0, alpha, steps):
    u = u0.copy()
    new = np.empty_like(u)
    for _ in range(steps):
        for i in range(1, u.size - 1):
            new[i] = u[i] + alpha * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        new[0] = 0.0
        new[-1] = 0.0
        u, new = new, u
    return u


def loss(u0, measured, steps):
    return np.sum((heat(u0, 0.4, steps) - measured) ** 2) + 1e-4 * np.sum(np.diff(u0) ** 2)


def recover(measured, steps, iterations):
    """The profile at the start, and the loss of every iteration."""
    optimizer = fnad.optim.adam(lr=lambda step: 0.02 * (1 + np.cos(np.pi * step / iterations)))

    @fnad.jit
    def update(u0, state):
        value, gradient = fnad.value_and_grad(loss)(u0, measured, steps)
        updates, state = optimizer.update(gradient, state, u0)
        return fnad.optim.apply_updates(u0, updates), state, value

    u0, history = np.zeros_like(measured), np.empty(iterations)
    state = optimizer.init(u0)
    for k in (bar := trange(iterations)):
        u0, state, history[k] = update(u0, state)
        if k % 20 == 0:
            bar.set_postfix(loss=f"{history[k]:.2e}")
    return u0, history


def plot(x, curves, history, path):
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for label, style, u in curves:
        left.plot(x, u, style, label=label, markersize=3)
    left.set(xlabel="position", ylabel="temperature", title="The rod")
    left.legend(frameon=False)
    right.semilogy(history)
    right.set(xlabel="iteration", ylabel="loss", title="Fit")
    for ax in (left, right):
        ax.grid(alpha=0.25)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(args):
    x = np.linspace(0.0, 1.0, args.points)
    truth = np.exp(-(((x - 0.3) / 0.08) ** 2)) + 0.6 * np.exp(-(((x - 0.7) / 0.1) ** 2))
    truth[[0, -1]] = 0.0
    noise = 1e-3 * np.random.default_rng(args.seed).normal(size=x.size)
    measured = heat(truth, 0.4, args.steps) + noise
    found, history = recover(measured, args.steps, args.iterations)
    args.out.mkdir(parents=True, exist_ok=True)
    curves = [("at the start", "k-", truth), ("measured", ".", measured), ("found from it", "r--", found)]
    plot(x, curves, history, args.out / "heat.png")
    print(f"loss {history[0]:.4f} to {history[-1]:.6f}, error of the profile {np.sqrt(np.mean((found - truth) ** 2)):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--points", type=int, default=101)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("heat"))
    main(parser.parse_args())
