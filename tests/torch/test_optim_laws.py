"""Laws of optimizers: a step is the pure update, groups are a partition, parts of a batch are the batch, a saved state goes on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
import fnad.torch as torch
from fnad.torch import nn

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])
decay, betas, truth = st.sampled_from([0, 0.05]), st.sampled_from([(0.9, 0.999), (0.3, 0.9)]), st.booleans()
OPTIONS = {
    "SGD": {"momentum": st.just(0.9), "nesterov": truth, "weight_decay": decay},
    "Adam": {"betas": betas, "amsgrad": truth, "weight_decay": decay},
    "AdamW": {"betas": betas, "amsgrad": truth, "eps": st.sampled_from([1e-8, 1e-3])},
    "Adamax": {"betas": betas, "weight_decay": decay},
    "NAdam": {"betas": betas, "weight_decay": decay, "decoupled_weight_decay": truth},
    "RAdam": {"betas": betas, "weight_decay": decay, "decoupled_weight_decay": truth},
    "Adagrad": {"lr_decay": decay, "initial_accumulator_value": decay, "weight_decay": decay},
    "Adadelta": {"rho": st.sampled_from([0.9, 0.5]), "weight_decay": decay},
    "RMSprop": {"alpha": st.sampled_from([0.99, 0.5]), "momentum": decay, "centered": truth, "weight_decay": decay},
    "Rprop": {"etas": st.sampled_from([(0.5, 1.2), (0.3, 2.0)])},
    "ASGD": {"t0": st.sampled_from([1e6, 1]), "lambd": st.sampled_from([1e-4, 0.1]), "weight_decay": decay},
    "Adafactor": {"d": st.sampled_from([1.0, 2.0]), "weight_decay": decay},
    "Muon": {"nesterov": truth, "weight_decay": decay, "adjust_lr_fn": st.sampled_from([None, "match_rms_adamw"])},
}


@st.composite
def optimizers(draw, names=tuple(OPTIONS), lr=st.sampled_from([0.1, 1e-3])):
    """A name and options."""
    name = draw(st.sampled_from(names))
    options = {k: draw(v) for k, v in OPTIONS[name].items()} | {"lr": draw(lr)}
    return name, options if name == "Muon" else options | {"maximize": draw(truth)}


def pair(name, tensors, options):
    """The optimizer of both faces."""
    return getattr(torch.optim, name)(tensors, **options), getattr(fnad.optim, name.lower())(**options)


def drawn(name, dtype, rng):
    """Parameters of several shapes, small and large."""
    shapes = ((3, 2), (2, 4), (40, 60)) if name == "Muon" else ((3, 2), (), (0,), (50, 60), (1, 2, 3))
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def put(tensors, grads):
    for t, g in zip(tensors, grads, strict=True):
        t.grad = None if g is None else torch.tensor(g)


def same_state(optimizer, tensors, state):
    for i, t in enumerate(tensors):
        for field in state._fields:
            column = getattr(state, field)
            if column is not None and column[i] is not None and optimizer.state[t]:
                np.testing.assert_array_equal(optimizer.state[t][field].numpy(), column[i])


@settings(max_examples=80)
@given(optimizers(), dtypes, seeds, st.integers(0, 3))
def test_a_step_is_the_pure_update_bit_for_bit(drawn_optimizer, dtype, seed, skipped):
    """Parameters and states, with a gradient that is missing in one step, and a learning rate that changes in between."""
    name, options = drawn_optimizer
    rng = np.random.default_rng(seed)
    params = drawn(name, dtype, rng)
    tensors = [torch.tensor(p, requires_grad=True) for p in params]
    optimizer, pure = pair(name, tensors, options)
    state = pure.init(params)
    for k in range(3):
        grads = [rng.normal(size=p.shape).astype(dtype) for p in params]
        if k == skipped:
            grads[0] = None
        put(tensors, grads)
        optimizer.step()
        updates, state = pure.update(grads, state, params)
        params = fnad.optim.apply_updates(params, updates)
        if k == 1 and name != "Rprop":
            optimizer.param_groups[0]["lr"] = 0.03
            pure = getattr(fnad.optim, name.lower())(**options | {"lr": 0.03})
    for t, p in zip(tensors, params, strict=True):
        np.testing.assert_array_equal(t.detach().numpy(), p)
    same_state(optimizer, tensors, state)


@given(st.lists(st.integers(0, 1), min_size=4, max_size=4), optimizers(("SGD", "AdamW", "NAdam", "RMSprop")), dtypes, seeds)
def test_groups_are_a_partition(labels, drawn_optimizer, dtype, seed):
    """Two groups with settings of their own, some parameters in each."""
    name, options = drawn_optimizer
    rng = np.random.default_rng(seed)
    params = [rng.normal(size=s).astype(dtype) for s in ((3,), (2, 2), (), (50, 60))]
    tensors = [torch.tensor(p, requires_grad=True) for p in params]
    own = [{}, {"lr": 0.05, "weight_decay": 0.2}]
    groups = [{"params": [t for t, x in zip(tensors, labels, strict=True) if x == i], **own[i]} for i in (0, 1)]
    optimizer = getattr(torch.optim, name)([g for g in groups if g["params"]], **options)
    factory = getattr(fnad.optim, name.lower())
    pure = fnad.optim.partition({i: factory(**options | own[i]) for i in (0, 1)}, labels)
    state = pure.init(params)
    for _ in range(3):
        grads = [rng.normal(size=p.shape).astype(dtype) for p in params]
        put(tensors, grads)
        optimizer.step()
        updates, state = pure.update(grads, state, params)
        params = fnad.optim.apply_updates(params, updates)
    for t, p in zip(tensors, params, strict=True):
        np.testing.assert_array_equal(t.detach().numpy(), p)


# -- whole training steps --------------------------------------------------------------------------------------------

SMOOTH = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "ASGD", "Adafactor")
"""Not Rprop and Muon: where a gradient is 0 but for rounding, the former takes its sign; the latter blows small singular values up."""


def tolerance(dtype):
    return {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-6, "atol": 1e-6}


class Problem:
    """A small classifier as a module and as a function, and the optimizer of both."""

    def __init__(self, seed, dtype, rows, name, options):
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(getattr(torch, np.dtype(dtype).name))
        self.x, self.y = rng.normal(size=(rows, 3)).astype(dtype), rng.integers(0, 2, rows)
        self.params = {k: v.numpy().copy() for k, v in self.model.state_dict().items()}
        # a large eps keeps gradients that are 0 but for rounding from being scaled up
        options = options | ({} if name in ("SGD", "ASGD") else {"eps": (1e-3, 1e-3) if name == "Adafactor" else 1e-3})
        self.optimizer, self.pure = pair(name, self.model.parameters(), options)

    def loss(self, p, x, y):
        F = fnad.nn.functional
        return F.cross_entropy(F.linear(np.tanh(F.linear(x, p["0.weight"], p["0.bias"])), p["2.weight"], p["2.bias"]), y)

    def backward(self, rows, weight=1.0):
        (nn.CrossEntropyLoss()(self.model(torch.from_numpy(self.x[rows])), torch.from_numpy(self.y[rows])) * weight).backward()

    def check(self, params, dtype):
        for name, p in self.model.state_dict().items():
            assert p.numpy().dtype == params[name].dtype == dtype
            np.testing.assert_allclose(p.numpy(), params[name], **tolerance(dtype))


@given(seeds, dtypes, optimizers(SMOOTH, st.just(0.01)))
def test_training_as_the_pure_face(seed, dtype, drawn_optimizer):
    problem = Problem(seed, dtype, 5, *drawn_optimizer)
    params, state = problem.params, problem.pure.init(problem.params)
    for _ in range(4):
        problem.optimizer.zero_grad()
        problem.backward(slice(None))
        problem.optimizer.step()
        grads = fnad.grad(problem.loss)(params, problem.x, problem.y)
        updates, state = problem.pure.update(grads, state, params)
        params = fnad.optim.apply_updates(params, updates)
    problem.check(params, dtype)


@given(seeds, dtypes, optimizers(SMOOTH, st.just(0.01)), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_steps_from_any_split_are_those_of_the_whole_batch(seed, dtype, drawn_optimizer, parts):
    """Gradients that add up in `.grad`, `accumulate`, and the whole batch: two steps."""
    rows = sum(parts)
    problem = Problem(seed, dtype, rows, *drawn_optimizer)
    pure, split = problem.pure, np.split(np.arange(rows), np.cumsum(parts)[:-1])
    several = fnad.optim.accumulate(pure, every=len(parts))
    whole = params = problem.params
    whole_state, state = pure.init(whole), several.init(params)
    for _ in range(2):
        updates, whole_state = pure.update(fnad.grad(problem.loss)(whole, problem.x, problem.y), whole_state, whole)
        whole = fnad.optim.apply_updates(whole, updates)
        problem.optimizer.zero_grad()
        for part in split:
            problem.backward(part, len(part) / rows)
            grads = fnad.grad(problem.loss)(params, problem.x[part], problem.y[part])
            updates, state = several.update(grads, state, params, weight=len(part))
            params = fnad.optim.apply_updates(params, updates)
        problem.optimizer.step()
        problem.check(whole, dtype)
        problem.check(params, dtype)


@given(seeds, dtypes, optimizers(tuple(n for n in OPTIONS if n not in ("Rprop", "Muon")), st.just(0.0)))
def test_zero_learning_rate_changes_nothing_but_state(seed, dtype, drawn_optimizer):
    name, options = drawn_optimizer
    rng = np.random.default_rng(seed)
    params = drawn(name, dtype, rng)
    tensors = [torch.tensor(p, requires_grad=True) for p in params]
    optimizer, _ = pair(name, tensors, options)
    for k in range(2):
        put(tensors, [rng.normal(size=p.shape).astype(dtype) for p in params])
        optimizer.step()
        for t, p in zip(tensors, params, strict=True):
            np.testing.assert_array_equal(t.detach().numpy(), p)
            assert optimizer.state[t]["step"].item() == k + 1


# -- states that are saved ---------------------------------------------------------------------------------------------

SCHEDULERS = {
    "StepLR": {"step_size": 2},
    "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 5},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 20, "cycle_momentum": False},
    "LinearLR": {"total_iters": 3},
}


@settings(max_examples=40)
@given(optimizers(), st.sampled_from(sorted(SCHEDULERS)), dtypes, seeds, st.integers(0, 3), st.booleans())
def test_a_saved_training_goes_on_bit_for_bit(tmp_path_factory, drawn_optimizer, schedule, dtype, seed, before, by_file):
    """Optimizer and scheduler, as dicts or by a file; what goes on afterwards leaves the saved state alone."""
    name, options = drawn_optimizer
    rng = np.random.default_rng(seed)
    params = drawn(name, dtype, rng)
    several = [[rng.normal(size=p.shape).astype(dtype) for p in params] for _ in range(before + 3)]

    def begin(params):
        tensors = [torch.tensor(p, requires_grad=True) for p in params]
        optimizer, _ = pair(name, tensors, options)
        return tensors, optimizer, getattr(torch.optim.lr_scheduler, schedule)(optimizer, **SCHEDULERS[schedule])

    def go(tensors, optimizer, scheduler, grads):
        for g in grads:
            put(tensors, g)
            optimizer.step()
            scheduler.step()

    tensors, optimizer, scheduler = begin(params)
    go(tensors, optimizer, scheduler, several[:before])
    saved = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "params": [t.detach() for t in tensors]}
    if by_file:
        path = tmp_path_factory.mktemp("saved") / "training.npz"
        torch.save(saved, path)
        saved = torch.load(path)
    again, other, other_scheduler = begin([t.numpy() for t in saved["params"]])
    other.load_state_dict(saved["optimizer"])
    other_scheduler.load_state_dict(saved["scheduler"])
    go(again, other, other_scheduler, several[before:])
    go(tensors, optimizer, scheduler, several[before:])
    assert scheduler.get_last_lr() == other_scheduler.get_last_lr()
    for t, a in zip(tensors, again, strict=True):
        np.testing.assert_array_equal(t.detach().numpy(), a.detach().numpy())
        assert optimizer.state[t].keys() == other.state[a].keys()
        for field, value in optimizer.state[t].items():
            np.testing.assert_array_equal(value.numpy(), other.state[a][field].numpy())
            assert value.dtype == other.state[a][field].dtype


@settings(max_examples=20)
@given(optimizers(), dtypes, seeds)
def test_a_pure_state_goes_on_from_a_file(tmp_path_factory, drawn_optimizer, dtype, seed):
    name, options = drawn_optimizer
    rng = np.random.default_rng(seed)
    params = dict(enumerate(drawn(name, dtype, rng)))
    params = {f"p{k}": v for k, v in params.items()}
    pure = fnad.optim.chain(fnad.optim.clip_by_global_norm(1.0), getattr(fnad.optim, name.lower())(**options))
    state = pure.init(params)
    _, state = pure.update(params, state, params)
    path = tmp_path_factory.mktemp("saved") / "state.npz"
    fnad.save(path, (params, state))
    loaded = fnad.load(path, like=(params, state))
    assert fnad.tree.structure(loaded) == fnad.tree.structure((params, state))
    fnad.testing.assert_trees_close(pure.update(params, loaded[1], loaded[0]), pure.update(params, state, params), rtol=0, atol=0)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_step_of_lbfgs_is_the_pure_one(search):
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    start = np.array([1.0, -2.0])
    options = {"lr": 0.5, "max_iter": 5, "line_search_fn": search}
    x = torch.tensor(start, requires_grad=True)
    optimizer, pure = torch.optim.LBFGS([x], **options), fnad.optim.lbfgs(**options)

    def value_and_grad(params):
        (p,) = params
        return 0.5 * p @ (a @ p), [a @ p]

    def closure():
        loss, (grad,) = value_and_grad([x.detach().numpy()])
        x.grad = torch.tensor(grad)
        return torch.tensor(loss)

    params = [start]
    state = pure.init(params)
    for _ in range(3):
        optimizer.step(closure)
        updates, state = pure.update(None, state, params, closure=value_and_grad)
        params = fnad.optim.apply_updates(params, updates)
    np.testing.assert_array_equal(x.detach().numpy(), params[0])
