"""The tables of equivalents in docs/migrating.md: their rows, and the values they are evaluated with. Needs neither fnad nor JAX."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "migrating.md"
RECORD = HERE / "equivalents_jax.json"
KINDS = {"optimizer of optax": "optimizers", "schedule of optax": "schedules", "function of JAX or optax": "functions"}


def rows() -> dict[str, list[tuple[str, str]]]:
    """Of each kind of table the pairs (expression of the other library, expression of fnad)."""
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS.values()}
    kind = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [c.strip().strip("`") for c in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            kind = None
        elif cells[0] in KINDS:
            kind = KINDS[cells[0]]
        elif kind and not set(line) <= set("|-"):
            found[kind].append((cells[0], cells[1]))
    return found


def values() -> dict[str, Any]:
    """What the names in functions stand for."""
    rng = np.random.default_rng(0)
    labels = np.array([0, 2, 1, 2])
    named = {"x": rng.normal(size=4), "y": rng.normal(size=4), "a": rng.normal(size=(4, 6)), "b": rng.normal(size=(4, 6))}
    classes = {"logits": rng.normal(size=(4, 3)), "targets": rng.dirichlet(np.ones(3), 4), "labels": labels, "onehot": np.eye(3)[labels]}
    images = {"images": rng.normal(size=(2, 3, 7, 7)), "filters": rng.normal(size=(4, 3, 3, 3))}
    return {**named, **classes, **images, "p": rng.uniform(0.1, 0.9, 4), "sign": np.array([1.0, -1.0, 1.0, -1.0])}


def training() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parameters, and the gradients of six steps."""
    rng = np.random.default_rng(1)
    shapes = {"w": (3, 2), "b": (3,)}

    def draw() -> dict[str, Any]:
        return {k: rng.normal(size=s) for k, s in shapes.items()}

    return draw(), [draw() for _ in range(6)]


def trained(optimizer: Any, apply_updates: Any, array: Any = np.asarray) -> dict[str, list[Any]]:
    """The parameters after six steps."""
    params, grads = training()
    params = {k: array(v) for k, v in params.items()}
    state = optimizer.init(params)
    for g in grads:
        updates, state = optimizer.update({k: array(v) for k, v in g.items()}, state, params)
        params = apply_updates(params, updates)
    return {k: np.asarray(v).tolist() for k, v in params.items()}


STEPS = range(35)
