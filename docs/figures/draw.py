"""Draws the figures of the documentation from what fnad computes: `python docs/figures/draw.py`."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import fnad

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # (the backend is chosen first)

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, GREY = "#3949ab", "#e67e22", "#2e8b57", "#c0392b", "#888888"
STYLE: Any = {
    "figure.dpi": 150, "savefig.facecolor": "white", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
}  # fmt: skip


def derivatives() -> Any:
    """tanh and its first three derivatives, by nesting grad."""
    x = np.linspace(-3.5, 3.5, 401)
    figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    f: Callable[..., Any] = np.tanh
    for label, color in (("tanh", BLUE), ("grad(tanh)", ORANGE), ("grad(grad(tanh))", GREEN), ("grad(grad(grad(tanh)))", RED)):
        axes.plot(x, fnad.vmap(f)(x), color=color, label=label, lw=1.8)
        f = fnad.grad(f)
    axes.set(xlabel="x", xlim=(-3.5, 3.5))
    axes.legend(loc="lower right", fontsize=8)
    return figure


def where_sqrt() -> Any:
    """np.where(x > 0, np.sqrt(x), 0): its value, and its gradient with and without the guarded product."""

    def f(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x), 0.0)

    x = np.linspace(-2.0, 4.0, 25)
    with np.errstate(all="ignore"):
        value = f(x)
        guarded = fnad.vmap(fnad.grad(f))(x)
        plain = np.where(x > 0, 1.0, 0.0) * (0.5 / np.sqrt(x))  # the chain rule as it stands
    assert np.isfinite(guarded).all()
    assert np.isnan(plain[x <= 0]).all()
    assert np.array_equal(plain[x > 0], guarded[x > 0])

    figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.7), layout="constrained")
    axes[0].plot(x, value, ".-", color=BLUE, ms=5)
    axes[0].set(title="np.where(x > 0, np.sqrt(x), 0)", xlabel="x")
    for side in (x <= 0, x > 0):
        axes[1].plot(x[side], guarded[side], ".-", color=GREEN, ms=5)
    axes[1].set(title="gradient by fnad", xlabel="x", ylim=(-0.15, 1.5))
    axes[2].plot(x, plain, ".-", color=ORANGE, ms=5)
    bad = x[np.isnan(plain)]
    axes[2].plot(bad, np.zeros_like(bad), "x", color=RED, ms=6, label="nan")
    axes[2].set(title="gradient by the bare chain rule", xlabel="x", ylim=(-0.15, 1.5))
    axes[2].legend(loc="upper right")
    for a in axes:
        a.title.set_size(9)
    return figure


def kinks() -> Any:
    """Functions with a kink, and the slope fnad returns there."""
    cases: list[tuple[str, Callable[..., Any], tuple[float, ...]]] = [
        ("np.abs(x)", np.abs, (0.0,)),
        ("np.maximum(x, 0)", lambda x: np.maximum(x, 0.0), (0.0,)),
        ("np.clip(x, -1, 1)", lambda x: np.clip(x, -1.0, 1.0), (-1.0, 1.0)),
        ("np.sqrt(x**2 + 0.01)", lambda x: np.sqrt(x**2 + 0.01), (0.0,)),
    ]
    x = np.linspace(-2.0, 2.0, 401)
    figure, axes = plt.subplots(1, 4, figsize=(8.6, 2.5), layout="constrained")
    for a, (title, f, points) in zip(axes, cases, strict=True):
        a.plot(x, f(x), color=BLUE, lw=1.6, label="value")
        slopes = fnad.vmap(fnad.grad(f))(x)
        smooth = ~np.isin(x, points) if title != "np.sqrt(x**2 + 0.01)" else np.ones(x.shape, bool)
        a.plot(x, np.where(smooth, slopes, np.nan), color=ORANGE, lw=1.4, label="derivative")
        for p in points:
            a.plot(p, fnad.grad(f)(p), "o", color=RED, ms=5, zorder=5)
        a.set_title(title, size=9)
        a.set_ylim(-1.25, 2.1)
    axes[3].legend(fontsize=7, loc="lower right")
    return figure


def descent() -> Any:
    """Three ways down a narrow valley: sgd, sgd with momentum, Newton steps."""
    scale = np.array([1.0, 12.0])

    def f(p: Any) -> Any:
        return 0.5 * np.sum(scale * p**2) + 0.15 * p[0] ** 4

    def path(step: Callable[[Any, Any], tuple[Any, Any]], state: Any, n: int) -> Any:
        p = np.array([-2.2, 1.3])
        points = [p]
        for _ in range(n):
            p, state = step(p, state)
            points.append(p)
        return np.stack(points)

    def sgd(**options: Any) -> tuple[Callable[[Any, Any], tuple[Any, Any]], Any]:
        opt = fnad.optim.sgd(**options)

        def step(p: Any, state: Any) -> tuple[Any, Any]:
            updates, state = opt.update(fnad.grad(f)(p), state, p)
            return fnad.optim.apply_updates(p, updates), state

        return step, opt.init(np.zeros(2))

    def newton(p: Any, state: Any) -> tuple[Any, Any]:
        return p - np.linalg.solve(fnad.hessian(f)(p), fnad.grad(f)(p)), state

    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    gx, gy = np.meshgrid(np.linspace(-2.6, 1.4, 161), np.linspace(-1.7, 1.7, 121))
    height = fnad.vmap(f)(np.stack([gx.ravel(), gy.ravel()], axis=1)).reshape(gx.shape)
    axes.contour(gx, gy, height, levels=np.geomspace(0.05, 30, 12), colors=GREY, linewidths=0.5)
    runs = [
        ("sgd(lr=0.12), 30 steps", path(*sgd(lr=0.12), 30), ORANGE),
        ("sgd(lr=0.05, momentum=0.7), 30 steps", path(*sgd(lr=0.05, momentum=0.7), 30), BLUE),
        ("Newton with fnad.hessian, 4 steps", path(newton, None, 4), GREEN),
    ]
    for label, points, color in runs:
        axes.plot(points[:, 0], points[:, 1], ".-", color=color, lw=1.1, ms=4, label=label)
    axes.set(xlim=(-2.6, 1.4), ylim=(-1.7, 1.7), xlabel="p[0]", ylabel="p[1]")
    axes.grid(False)
    axes.legend(fontsize=7.5, loc="lower right")
    return figure


def profile() -> Any:
    """Where the time of a training step goes."""

    def step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return fnad.nn.functional.cross_entropy(np.tanh(x @ p["w"] + p["b"]) @ p["v"], y)

        return fnad.tree.map(lambda p, g: p - 0.1 * g, p, fnad.grad(loss)(p))

    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(64, 128)) / 8, "b": np.zeros(128), "v": rng.normal(size=(128, 10)) / 11}
    return fnad.profile(step)(params, rng.normal(size=(512, 64)), rng.integers(0, 10, 512)).plot()


def optimizers() -> Any:
    """Optimizers on their way along a curved valley, and past a saddle."""

    def banana(p: Any) -> Any:
        return (1 - p[0]) ** 2 + 5 * (p[1] - p[0] ** 2) ** 2

    def saddle(p: Any) -> Any:
        return p[0] ** 2 - p[1] ** 2 + p[1] ** 4 / 2

    def path(f: Any, opt: Any, start: Any, n: int) -> Any:
        def step(carry: Any, _: Any) -> Any:
            p, state = carry
            updates, state = opt.update(fnad.grad(f)(p), state, p)
            p = fnad.optim.apply_updates(p, updates)
            return (p, state), p

        return np.concatenate([start[None], fnad.scan(step, (start, opt.init(start)), length=n)[1]])

    o = fnad.optim
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained", width_ratios=(1.15, 1))
    runs = [
        ("sgd", o.sgd(0.01), GREY), ("sgd, momentum 0.9", o.sgd(0.01, 0.9), BLUE), ("adam", o.adam(0.15), ORANGE),
        ("rmsprop", o.rmsprop(0.04), GREEN), ("lion", o.lion(0.06), RED), ("adan", o.adan(0.15), "#8e44ad"),
        ("rprop", o.rprop(0.05), "#16a085"),
    ]  # fmt: skip
    for a, f, start, n, stars, (x, y), title in (
        (axes[0], banana, np.array([-1.4, 1.6]), 60, [(1, 1)], ((-1.9, 1.7), (-0.9, 2.4)), "A curved valley: 60 steps to the star"),
        (axes[1], saddle, np.array([-1.4, 1e-3]), 40, [(0, 1), (0, -1)], ((-1.6, 0.9), (-1.3, 1.5)), "A saddle: 40 steps to a star"),
    ):
        gx, gy = np.meshgrid(np.linspace(*x, 181), np.linspace(*y, 161))
        height = fnad.vmap(f)(np.stack([gx.ravel(), gy.ravel()], axis=1)).reshape(gx.shape)
        a.contour(gx, gy, height - height.min(), levels=np.geomspace(0.03, 60, 14), colors=GREY, linewidths=0.5)
        for label, opt, color in runs:
            points = path(f, opt, start, n)
            a.plot(points[:, 0], points[:, 1], ".-", color=color, lw=1.0, ms=3, label=label)
        a.plot(*zip(*stars, strict=True), "*", color="black", ms=9)
        a.set(xlim=x, ylim=y)
        a.set_title(title, size=9)
        a.grid(False)
    axes[0].legend(fontsize=6.5, loc="lower left")
    return figure


def schedules() -> Any:
    """Every schedule over 100 steps, from a learning rate of 1."""
    s = fnad.optim.schedules
    plateau = s.reduce_lr_on_plateau(factor=0.5, patience=8)
    state, falling = plateau.init(1.0), []
    for t in range(101):  # a loss that stops to fall again and again
        falling.append(float(state.lr))
        _, state = plateau.update(np.exp(-(t // 25) - min(t % 25, 8) / 8), state)
    shown = {
        "constant_lr(1, 0.3, 30)": s.constant_lr(1.0, 0.3, 30),
        "linear_lr(1, 0.2, 1, 40)": s.linear_lr(1.0, 0.2, 1.0, 40),
        "polynomial_lr(1, 80, 2)": s.polynomial_lr(1.0, 80, 2.0),
        "step_lr(1, 25, 0.5)": s.step_lr(1.0, 25, 0.5),
        "multi_step_lr(1, [30, 80], 0.4)": s.multi_step_lr(1.0, [30, 80], 0.4),
        "exponential_lr(1, 0.97)": s.exponential_lr(1.0, 0.97),
        "cosine_annealing_lr(1, 50)": s.cosine_annealing_lr(1.0, 50),
        "cosine_annealing_warm_restarts(1, 15, 2)": s.cosine_annealing_warm_restarts(1.0, 15, 2),
        "cyclic_lr(0.1, 1, 15, mode='triangular2')": s.cyclic_lr(0.1, 1.0, 15, mode="triangular2"),
        "one_cycle_lr(1, 101)": s.one_cycle_lr(1.0, 101),
        "swa_lr(1, 0.2, 40)": s.swa_lr(1.0, 0.2, 40),
        "sequential_lr([linear, cosine], [20])": s.sequential_lr([s.linear_lr(1.0, 0.05, 1.0, 20), s.cosine_annealing_lr(1.0, 80)], [20]),
        "warmup_cosine(1, 10, 100)": s.warmup_cosine(1.0, 10, 100),
        "warmup_stable_decay(1, 10, 60, 30)": s.warmup_stable_decay(1.0, 10, 60, 30),
        "chained_scheduler(1, [step, exponential])": s.chained_scheduler(1.0, [s.step_lr(1.0, 40, 0.5), s.exponential_lr(1.0, 0.99)]),
    }
    ticks = np.arange(101)
    curves = {title: fnad.vmap(schedule)(ticks) for title, schedule in shown.items()} | {"reduce_lr_on_plateau(0.5, 8)": np.array(falling)}
    figure, axes = plt.subplots(4, 4, figsize=(8.6, 5.4), layout="constrained", sharex=True, sharey=True)
    for a, (title, curve) in zip(axes.flat, curves.items(), strict=True):
        a.plot(ticks, curve, color=BLUE, lw=1.4)
        a.fill_between(ticks, curve, color=BLUE, alpha=0.12, lw=0)
        a.set_title(title, size=6.5)
        a.tick_params(labelsize=6.5)
        a.set_ylim(0, 1.08)
    figure.supxlabel("step", size=8)
    figure.supylabel("learning rate", size=8)
    return figure


def measured() -> Any:
    """What `python -m tests.benchmarks.jit --json docs/figures/jit.json` found."""
    return json.loads((HERE / "jit.json").read_text(encoding="utf-8"))


def _compared(rows: Any, x: str, ylabel: str, scale: float) -> Any:
    """NumPy's and fnad's curves over a size."""
    _, axes = plt.subplots(figsize=(6.4, 2.9), layout="constrained")
    sizes = [row[x] for row in rows]
    for name, label, color in (("numpy", "NumPy", GREY), ("fnad", "fnad.jit", BLUE)):
        axes.plot(sizes, [scale * row[name] for row in rows], ".-", color=color, label=label)
    axes.set(xscale="log", yscale="log", ylabel=ylabel)
    axes.legend()
    return axes


def jit_sizes() -> Any:
    axes = _compared(measured()["sizes"], "n", "microseconds", 1e6)
    axes.set(xlabel="entries")
    return axes.figure


def jit_products() -> Any:
    axes = _compared(measured()["products"], "n", "billion operations per second", 1e-9)
    axes.set(xlabel="rows and columns", xscale="log")
    axes.set_xscale("log", base=2)
    return axes.figure


def jit_first_call() -> Any:
    rows = measured()["first_calls"]
    figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    axes.plot([r["layers"] for r in rows], [r["seconds"] for r in rows], ".-", color=BLUE)
    axes.set(xlabel="layers", ylabel="seconds", ylim=(0, None))
    return figure


PAINTERS = (derivatives, where_sqrt, kinks, descent, profile, optimizers, schedules, jit_sizes, jit_products, jit_first_call)
FIGURES = {f.__name__: f for f in PAINTERS}


def draw(folder: Path) -> list[Path]:
    """Draw all figures into a folder; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with plt.rc_context(STYLE):
        for name, make in FIGURES.items():
            figure = make()
            paths.append(folder / f"{name}.png")
            figure.savefig(paths[-1], metadata={"Software": None})
            plt.close(figure)
    return paths


def examples(folder: Path) -> list[Path]:
    """The pictures that the example programs make, by running them."""
    programs = HERE.parents[1] / "examples"
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, programs / "train_digits.py", "--out", made], check=True)
        paths = [Path(shutil.copy(Path(made) / f"{name}.png", folder / f"digits_{name}.png")) for name in ("loss", "mistakes")]
    for name in ("lenet", "char_gpt"):
        paths.append(folder / f"{name}.png")
        subprocess.run([sys.executable, programs / f"{name}.py", "--plot", paths[-1]], check=True)
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    out = parser.parse_args().out
    for path in [*draw(out), *examples(out)]:
        print(path)
