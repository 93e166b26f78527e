"""What the tests of optimizers share: one table of optimizers, and runs of them."""

import json
import pathlib

import numpy as np
import pytest

import fnad
from fnad import optim

HERE = pathlib.Path(__file__).parent
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}
OPTIMIZERS = {
    "sgd": (optim.sgd, {"lr": 0.1}),
    "sgd decay maximize": (optim.sgd, {"lr": 0.1, "weight_decay": 0.05, "maximize": True}),
    "sgd momentum": (optim.sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    "sgd nesterov": (optim.sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05, "maximize": True}),
    "adam": (optim.adam, {"lr": 0.1}),
    "adam decay": (optim.adam, {"lr": 0.1, "betas": (0.3, 0.9), "weight_decay": 0.05, "maximize": True}),
    "adam amsgrad": (optim.adam, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.05}),
    "adamw": (optim.adamw, {"lr": 0.1}),
    "adamw amsgrad": (optim.adamw, {"lr": 0.1, "amsgrad": True, "maximize": True, "weight_decay": 0.3}),
    "adamax": (optim.adamax, {"lr": 0.1, "weight_decay": 0.05}),
    "nadam": (optim.nadam, {"lr": 0.1}),
    "nadam decoupled": (optim.nadam, {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": (optim.radam, {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.05}),
    "adagrad": (optim.adagrad, {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "adadelta": (optim.adadelta, {"lr": 0.5, "eps": 1e-3}),
    "rmsprop": (optim.rmsprop, {"lr": 0.1}),
    "rmsprop centered": (optim.rmsprop, {"lr": 0.1, "centered": True, "momentum": 0.9, "weight_decay": 0.05, "eps": 1e-2}),
    "rprop": (optim.rprop, {"lr": 0.1}),
    "asgd": (optim.asgd, {"lr": 0.1, "lambd": 0.1, "t0": 1.0, "weight_decay": 0.05}),
    "adafactor": (optim.adafactor, {"lr": 0.1, "weight_decay": 0.05}),
    "lion": (optim.lion, {"lr": 0.1, "weight_decay": 0.05}),
    "adabelief": (optim.adabelief, {"lr": 0.1, "eps": 1e-6}),
    "adan": (optim.adan, {"lr": 0.1, "weight_decay": 0.05}),
    "lamb": (optim.lamb, {"lr": 0.1, "weight_decay": 0.05}),
    "schedule_free_sgd": (optim.schedule_free_sgd, {"lr": 0.1, "weight_decay": 0.05}),
    "schedule_free_adamw": (optim.schedule_free_adamw, {"lr": 0.1, "warmup_steps": 3, "r": 1.0}),
    "muon": (optim.muon, {"lr": 0.1}),
}
"""Every optimizer that treats each leaf by itself, with options that reach all of its formula. `muon` takes matrices only."""


each_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def make(name, **more):
    factory, options = OPTIMIZERS[name]
    return factory(**{**options, **more})


def record(name):
    return json.loads((HERE / f"{name}.json").read_text())


def arrays(tree, dtype):
    return {k: np.array(v, dtype) for k, v in tree.items()}


def given(grads, dtype, skip=()):
    """The recorded gradients, with None where they are skipped."""
    return [{k: None if (t, k) in skip else v for k, v in arrays(g, dtype).items()} for t, g in enumerate(grads)]


def leaves(tree):
    return [x for x in fnad.tree.leaves(tree) if x is not None]


def run(opt, params, grads, **extra):
    """Trajectory of (params, state)."""
    state, seen = opt.init(params), []
    for g in grads:
        updates, state = opt.update(g, state, params, **extra)
        params = optim.apply_updates(params, updates)
        seen.append((params, state))
    return seen


def draw(name, dtype, seed=0, size=None):
    """Parameters of several shapes, and a function that draws gradients for them."""
    rng = np.random.default_rng(seed)
    shapes = {"w": (3, 2), "v": (2, 4)} if name == "muon" else {"w": (3, 2), "b": (4,), "s": ()}
    if size is not None:
        shapes = dict.fromkeys(shapes, size)

    def tree():
        return {k: np.array(rng.normal(size=shape), dtype) for k, shape in shapes.items()}

    return tree(), tree
