"""`fnad.optim.adam` and `adamw`: PyTorch's trajectories, purity, and the same bits on every path."""

import json
import pathlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad import optim
from fnad.compiler.pipeline import Executable
from fnad.compiler.program import Loop, Store, stores
from fnad.compiler.simplify import simplify
from fnad.errors import ArgumentError, ShapeError, TreeError
from fnad.kernels import update as kernels
from fnad.testing import assert_trees_close

RECORDED = json.loads((pathlib.Path(__file__).parent / "adam_torch.json").read_text())
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}
OPTIMIZERS = [
    optim.adam(lr=0.1),
    optim.adam(lr=0.1, betas=(0.3, 0.9), weight_decay=0.05, maximize=True),
    optim.adam(lr=0.1, amsgrad=True, weight_decay=0.05),
    optim.adamw(lr=0.1),
    optim.adamw(lr=0.1, amsgrad=True, maximize=True, weight_decay=0.3),
]
each_optimizer = pytest.mark.parametrize("opt", OPTIMIZERS, ids=["plain", "decay", "amsgrad", "adamw", "adamw amsgrad"])
FIELDS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def arrays(tree, dtype):
    return {k: np.array(v, dtype) for k, v in tree.items()}


def leaves(tree):
    return [x for x in fnad.tree.leaves(tree) if x is not None]


def run(opt, params, grads):
    """Trajectory of (params, state)."""
    state, seen = opt.init(params), []
    for g in grads:
        updates, state = opt.update(g, state, params)
        params = optim.apply_updates(params, updates)
        seen.append((params, state))
    return seen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("run_index", range(len(RECORDED["runs"])))
def test_trajectory_of_pytorch(run_index, dtype):
    record = RECORDED["runs"][run_index]
    schedule, skip = record["schedule"], {tuple(s) for s in record["skip"]}
    options = dict(record["options"])
    if schedule:
        options["lr"] = lambda t: eval(schedule, {"t": t})
    opt = {"Adam": optim.adam, "AdamW": optim.adamw}[record["name"]](**options)
    grads = [{k: None if (t, k) in skip else v for k, v in arrays(g, dtype).items()} for t, g in enumerate(RECORDED["grads"])]
    seen = run(opt, arrays(RECORDED["start"], dtype), grads)
    for step, want in record[dtype].items():
        params, state = seen[int(step) - 1]
        for k, p in params.items():
            assert p.dtype == dtype
            np.testing.assert_allclose(p, np.array(want["params"][k]), TOLERANCE[dtype], TOLERANCE[dtype])
            assert state.step[k] == int(step) - sum((t, k) in skip for t in range(int(step)))
            for field in FIELDS:
                mine, theirs = getattr(state, field), want[field].get(k)
                if mine is None:
                    assert theirs is None
                    continue
                assert mine[k].dtype == dtype
                np.testing.assert_allclose(mine[k], np.zeros(p.shape) if theirs is None else theirs, TOLERANCE[dtype], TOLERANCE[dtype])


def test_defaults_are_those_of_pytorch():
    w = np.array([1.0, -2.0])
    updates, _ = optim.adam().update(w, optim.adam().init(w), w)
    np.testing.assert_allclose(updates, [-0.001, 0.001], 1e-7)
    updates, _ = optim.adamw().update(0 * w, optim.adamw().init(w), w)
    np.testing.assert_array_equal(updates, -1e-3 * 1e-2 * w)


def test_init_gives_zeros_like_params():
    params = {"w": np.ones((2, 3), np.float32), "none": None, "nested": (1.5, [np.array(2.0)]), "count": np.arange(3)}
    for amsgrad in (False, True):
        state = optim.adam(amsgrad=amsgrad).init(params)
        assert state._fields == ("step", *FIELDS)
        assert (state.max_exp_avg_sq is None) != amsgrad
        for field in FIELDS:
            zeros = getattr(state, field)
            if zeros is None:
                continue
            assert fnad.tree.structure(zeros) == fnad.tree.structure(params)
            for p, z in zip(fnad.tree.leaves(params), fnad.tree.leaves(zeros), strict=True):
                assert (z.shape, z.dtype) == (np.shape(p), np.asarray(p).dtype)
                assert not z.any()
        assert all((s.shape, s.dtype, s) == ((), np.int64, 0) for s in fnad.tree.leaves(state.step))


@each_optimizer
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pure(opt, dtype):
    """Arguments stay as they are, structure and dtypes too, and no result shares memory with an argument or another result."""
    params = {"w": np.arange(6, dtype=dtype).reshape(2, 3), "b": np.ones(4, dtype), "frozen": np.ones(2, dtype)}
    grads = {"w": np.ones((2, 3), dtype), "b": np.full(4, 2, dtype), "frozen": None}
    state = opt.init(params)
    for _ in range(3):
        given = leaves((params, grads, state))
        before = [x.copy() for x in given]
        for x in given:
            x.flags.writeable = False
        updates, new = opt.update(grads, state, params)
        moved = optim.apply_updates(params, updates)
        results = leaves((updates, new, moved))
        for x, y in zip(given, before, strict=True):
            assert x.tobytes() == y.tobytes()
        for i, r in enumerate(results):
            assert type(r) is np.ndarray
            assert r.flags.writeable
            assert not any(np.shares_memory(r, x) for x in (*given, *results[:i]))
        for old, now in zip(leaves((params, state)), leaves((moved, new)), strict=True):
            assert (old.shape, old.dtype) == (now.shape, now.dtype)
        params, state = moved, new


finite = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(finite, finite, finite, st.floats(0, 1e3, width=32), st.floats(0, 1e3, width=32)), min_size=0, max_size=9),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 5),
    st.booleans(),
    st.fixed_dictionaries(
        {
            "lr": st.floats(0, 2),
            "betas": st.sampled_from([(0.9, 0.999), (0.3, 0.9), (0.0, 0.0)]),
            "eps": st.sampled_from([1e-8, 0.1]),
            "weight_decay": st.sampled_from([0.0, 0.01, 1.0]),
            "amsgrad": st.booleans(),
            "maximize": st.booleans(),
        }
    ),
)
def test_every_path_gives_the_same_bits(rows, dtype, step, decoupled, options):
    """The kernel, the kernel undecorated, and NumPy under grad, vmap and recording."""
    g, p, avg, avg_sq, top = np.array(rows, dtype).reshape(-1, 5).T.copy()
    opt = (optim.adamw if decoupled else optim.adam)(**options)
    state = optim.AdamState(np.array(step), avg, avg_sq, top if options["amsgrad"] else None)
    u, new = opt.update(g, state, p)

    def same(updates, other):
        assert np.asarray(updates).tobytes() == u.tobytes()
        for a, b in zip(leaves(other), leaves(new), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()

    same(*fnad.vjp(lambda g, p, m: opt.update(g, state._replace(exp_avg=m), p), g, p, avg)[0])
    graph = fnad.make_graph(opt.update)(g, state, p)
    u2, *rest = fnad.core.graph.evaluate(graph, [g, *leaves(state), p])
    same(u2, rest)
    lifted = fnad.tree.map(lambda x: x[None], (g, state, p))
    updates, batched = fnad.vmap(opt.update)(*lifted)
    same(updates[0], fnad.tree.map(lambda x: x[0], batched))
    rule = opt.update.__self__
    numbers = rule.numbers(np.int64(step), np.dtype(dtype))
    out = [np.empty_like(g) for _ in range(4)]
    flags = decoupled, options["maximize"], options["amsgrad"], rule.near
    with np.errstate(all="ignore"):
        kernels.adam.py_func(g, p, avg, avg_sq, top, *numbers, *flags, *out)
    same(out[0], [np.array(step + 1), *out[1 : 4 if options["amsgrad"] else 3]])


@each_optimizer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled(opt, dtype):
    """A jitted update follows the eager one, and every leaf is one loop."""
    rng = np.random.default_rng(0)
    params = {k: rng.normal(size=(3, 4)).astype(dtype) for k in "ab"}

    def step(params, state, grads):
        updates, state = opt.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    jitted, state = fnad.jit(step), opt.init(params)
    for _ in range(4):
        grads = {k: rng.normal(size=(3, 4)).astype(dtype) for k in "ab"}
        want = step(params, state, grads)
        assert_trees_close(jitted(params, state, grads), want)
        params, state = want
    nodes = Executable(simplify(fnad.make_graph(step)(params, state, grads))).schedule.nodes
    assert [type(n) for n in nodes if not isinstance(n, Store)] == [Loop, Loop]
    assert all(s.buffer.shape == (3, 4) for n in nodes if isinstance(n, Loop) for s in stores(n))  # all else is computed once


def test_non_contiguous_and_byte_swapped_leaves():
    opt = optim.adam(lr=0.1, weight_decay=0.1)
    p, g = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    want, _ = opt.update(g, opt.init(p), p)
    for q, h in (
        (np.asfortranarray(p), g),
        (np.repeat(p, 2, axis=1)[:, ::2], np.broadcast_to(1.0, (3, 4))),
        (p.astype(">f8"), g.astype(">f8")),
    ):
        got, _ = opt.update(h, opt.init(q), q)
        np.testing.assert_array_equal(got, want)
        assert got.flags.c_contiguous


def test_python_float_leaves():
    opt = optim.adam(lr=0.5)
    params = {"w": 3.0}
    updates, _ = opt.update(fnad.grad(lambda p: p["w"] ** 2)(params), opt.init(params), params)
    assert optim.apply_updates(params, updates)["w"] == pytest.approx(2.5)


# -- schedules, traced hyperparameters, None -------------------------------------------------------------------------


def test_a_schedule_sees_the_step_of_each_leaf():
    seen = []

    def schedule(t):
        seen.append(int(t))
        return np.float64(0.1)

    g = np.ones(1, np.float32)
    (_, _), (params, state) = run(optim.adam(schedule), {"a": g, "b": g}, [{"a": g, "b": None}, {"a": g, "b": g}])
    assert seen == [0, 1, 0]
    assert params["a"].dtype == state.exp_avg["a"].dtype == np.float32


@pytest.mark.parametrize("make", [optim.adam, optim.adamw])
def test_gradient_through_the_optimizer(make):
    """Derivatives of a loss after three steps by each hyperparameter, and by the start, against central differences."""
    x = np.array([1.0, -2.0, 0.5])

    def final_loss(numbers, start):
        lr, beta1, beta2, eps, weight_decay = (numbers[i] for i in range(5))
        opt = make(lr, (beta1, beta2), eps, weight_decay)
        params, state = {"w": start}, opt.init({"w": start})
        for _ in range(3):
            grads = fnad.grad(lambda p: np.sum(p["w"] ** 4) / 4)(params)
            updates, state = opt.update(grads, state, params)
            params = optim.apply_updates(params, updates)
        return np.sum(params["w"] ** 2)

    numbers = np.array([0.03, 0.9, 0.8, 0.1, 0.2])
    got = fnad.grad(final_loss, argnums=(0, 1))(numbers, x)
    for k, point in enumerate((numbers, x)):
        for i in range(point.size):
            h = np.zeros(point.size)
            h[i] = 1e-6
            args = [(numbers + s * h, x) if k == 0 else (numbers, x + s * h) for s in (1, -1)]
            assert got[k][i] == pytest.approx((final_loss(*args[0]) - final_loss(*args[1])) / 2e-6, rel=1e-5)


def test_a_none_gradient_leaves_parameter_and_state_alone():
    opt = optim.adam(lr=0.1, amsgrad=True)
    params = {"a": np.ones(2), "b": np.ones(2)}
    _, state = opt.update(params, opt.init(params), params)
    updates, after = opt.update({"a": np.ones(2), "b": None}, state, params)
    assert updates["b"] is None
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(after, field)["b"], getattr(state, field)["b"])
    assert (after.step["a"], after.step["b"]) == (2, 1)


def test_params_may_be_left_out_without_weight_decay():
    g = {"w": np.ones(2)}
    opt = optim.adam()
    np.testing.assert_array_equal(opt.update(g, opt.init(g))[0]["w"], opt.update(g, opt.init(g), g)[0]["w"])
    with pytest.raises(ArgumentError, match="weight_decay"):
        optim.adamw().update(g, opt.init(g))


def test_optimizers_pickle():
    opt = pickle.loads(pickle.dumps(optim.adamw(lr=0.1)))
    p = np.ones(2)
    np.testing.assert_array_equal(opt.update(p, opt.init(p), p)[0], optim.adamw(lr=0.1).update(p, opt.init(p), p)[0])


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -0.1}, "Invalid learning rate: -0.1"),
        ({"eps": -1e-8}, "Invalid epsilon value: -1e-08"),
        ({"betas": (1.0, 0.5)}, "Invalid beta parameter at index 0: 1.0"),
        ({"betas": (0.5, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        ({"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
        ({"eps": np.ones(2)}, "one number"),
    ],
)
def test_invalid_options(options, message):
    for make in (optim.adam, optim.adamw):
        with pytest.raises(ValueError, match=message):
            make(**options)


def test_a_state_that_does_not_fit():
    p = {"w": np.ones(3)}
    opt, largest = optim.adam(), optim.adam(amsgrad=True)
    with pytest.raises(TreeError, match="AdamState"):
        opt.update(p, optim.sgd().init(p), p)
    with pytest.raises(TreeError, match="amsgrad"):
        opt.update(p, largest.init(p), p)
    with pytest.raises(TreeError, match="amsgrad"):
        largest.update(p, opt.init(p), p)
    with pytest.raises(TreeError, match=r"state\.exp_avg_sq\['w'\]: None"):
        opt.update(p, opt.init(p)._replace(exp_avg_sq={"w": None}), p)
    with pytest.raises(ShapeError, match=r"state\.exp_avg"):
        opt.update(p, opt.init(p)._replace(exp_avg={"w": np.ones(2)}), p)
