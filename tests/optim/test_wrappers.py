"""Optimizers around optimizers: laws that hold for any of them, eagerly and compiled."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad import optim
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, TreeError
from fnad.optim.wolfe import strong_wolfe
from fnad.testing import assert_trees_close

from .trajectories import draw, leaves, make, run

seeds = st.integers(0, 2**32 - 1)
INNER = ("sgd momentum", "adamw", "nadam", "lamb", "schedule_free_adamw")
WRAPPED = {
    "chain": lambda o: optim.chain(optim.clip_by_global_norm(0.5), optim.clip_by_value(0.3), optim.add_decayed_weights(0.1), o),
    "masked": lambda o: optim.masked(o, {"w": True, "b": False, "s": True}),
    "partition": lambda o: optim.partition({0: o, 1: optim.sgd(0.1)}, {"w": 0, "b": 1, "s": 0}),
    "accumulate": lambda o: optim.accumulate(o, 2),
    "skip_not_finite": optim.skip_not_finite,
    "ema": lambda o: optim.ema(o, 0.9),
    "swa": lambda o: optim.swa(o, start=1, every=2),
    "lookahead": lambda o: optim.lookahead(o, 2),
}


def quiet(update):
    """Without the warnings of arithmetic on nan."""

    def run(*args, **extra):
        with np.errstate(all="ignore"):
            return update(*args, **extra)

    return run


@pytest.mark.parametrize("name", WRAPPED)
def test_eager_is_jit(name):
    """The same results, structure and dtypes; purity; and every state pickles, as the optimizer does."""
    opt = pickle.loads(pickle.dumps(optim.chain(WRAPPED[name](optim.adam(0.1))))) if name != "masked" else WRAPPED[name](optim.adam(0.1))
    params, grads = draw("adam", np.float32)
    update = fnad.jit(opt.update)
    state = pickle.loads(pickle.dumps(opt.init(params)))
    for k in range(5):
        g = grads()
        if k == 2 and name == "skip_not_finite":
            g["b"][1] = np.inf
        before = leaves((params, state, g))
        copies = [np.copy(x) for x in before]
        want = quiet(opt.update)(g, state, params)
        assert all(x.tobytes() == y.tobytes() for x, y in zip(before, copies, strict=True))
        got = update(g, state, params)
        assert_trees_close(got, want, rtol=1e-5, atol=1e-6)
        for x, y in zip(leaves(got), leaves(want), strict=True):
            assert x.dtype == y.dtype
        assert fnad.tree.structure(want[1]) == fnad.tree.structure(state)
        assert not any(np.shares_memory(x, y) for x in leaves(want) for y in before)
        params, state = optim.apply_updates(params, want[0]), want[1]


# -- by leaf -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INNER)
@settings(max_examples=5)
@given(seeds, st.lists(st.sampled_from("xyz"), min_size=3, max_size=3), st.integers(0, 3))
def test_groups_of_equal_settings_are_no_groups(name, seed, labels, skipped):
    """For any partition, with gradients that are None too."""
    params, grads = draw(name, np.float64, seed)
    groups = optim.partition({x: make(name) for x in "xyz"}, dict(zip(params, labels, strict=True)))
    several = [grads() for _ in range(3)]
    for k, g in enumerate(several):
        if k == skipped:
            g["b"] = None
    for (p, _), (q, _) in zip(run(groups, params, several), run(make(name), params, several), strict=True):
        assert_trees_close(p, q, rtol=0, atol=0)


def test_groups_keep_their_settings():
    params = {"w": np.ones(2), "deep": [np.ones(3), None], "b": np.ones(1)}
    label = lambda p: fnad.tree.map(lambda x: "small" if x.size == 1 else "large", p)
    opt = optim.partition({"small": optim.sgd(1.0), "large": optim.adam(0.5)}, label)
    updates, state = opt.update(params, opt.init(params), params)
    np.testing.assert_array_equal(updates["b"], [-1.0])
    np.testing.assert_allclose(updates["deep"][0], -0.5 * np.ones(3))
    assert isinstance(state["small"], optim.SGDState)
    assert state["large"].exp_avg["b"] is state["small"].momentum_buffer["w"] is None
    same, _ = opt.update(params, opt.init(params))  # neither reads the parameters
    assert_trees_close(same, updates, rtol=0, atol=0)
    with pytest.raises(ArgumentError, match=r"labels\['b'\]: 'tiny'"):
        optim.partition({"large": optim.sgd()}, {"w": "large", "b": "tiny"}).init({"w": np.ones(2), "b": np.ones(1)})
    with pytest.raises(TreeError, match="labels must have the same pytree structure"):
        optim.partition({"large": optim.sgd()}, {"w": "large"}).init({"w": np.ones(2), "b": np.ones(1)})


def test_a_mask_lets_gradients_pass():
    params, grads = {"w": np.ones(2), "b": np.ones(2), "c": np.ones(2)}, {"w": np.ones(2), "b": np.full(2, 3.0), "c": None}
    for mask in ({"w": True, "b": False, "c": True}, lambda p: {k: k != "b" for k in p}):
        opt = optim.masked(optim.adam(0.1), mask)
        updates, state = opt.update(grads, opt.init(params), params)
        np.testing.assert_array_equal(updates["b"], grads["b"])
        assert updates["c"] is state.exp_avg["b"] is None
        np.testing.assert_allclose(updates["w"], [-0.1, -0.1])


# -- accumulation --------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=5), st.sampled_from(INNER), st.booleans())
def test_any_split_of_a_batch_is_the_whole_batch(seed, parts, name, grouped):
    """Two steps of a least-squares problem, of the loss's mean; the parts weigh as many examples as they have."""
    rng = np.random.default_rng(seed)
    n = sum(parts)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    gradient = fnad.grad(lambda p, x, y: np.mean((x @ p["w"] + p["b"] - y) ** 2))
    inner = optim.partition({"a": make(name), "b": make(name)}, {"w": "a", "b": "b"}) if grouped else make(name)
    params = whole = {"w": rng.normal(size=3), "b": np.array(0.5)}
    opt = optim.accumulate(inner, every=len(parts))
    state, whole_state = opt.init(params), inner.init(params)
    for _ in range(2):
        updates, whole_state = inner.update(gradient(whole, x, y), whole_state, whole)
        whole = optim.apply_updates(whole, updates)
        for part in np.split(np.arange(n), np.cumsum(parts)[:-1]):
            updates, state = opt.update(gradient(params, x[part], y[part]), state, params, weight=len(part))
            params = optim.apply_updates(params, updates)
        assert_trees_close(params, whole, rtol=1e-10, atol=1e-11)
        assert state.mini_step == state.weight == 0


def test_accumulation_by_hand():
    opt = optim.accumulate(optim.sgd(1.0), 3)
    params = {"a": np.zeros(1, np.float32), "never": np.zeros(2)}
    state = opt.init(params)
    for k, g in enumerate((1.0, 2.0, 6.0)):
        updates, state = opt.update({"a": np.full(1, g, np.float32), "never": None}, state, params)
        assert updates["never"] is None
        assert updates["a"].dtype == np.float32
        np.testing.assert_array_equal(updates["a"], [-3.0 if k == 2 else 0.0])
        assert state.mini_step == (k + 1) % 3
    assert (state.inner.step["a"], state.inner.step["never"]) == (1, 0)
    with pytest.raises(ArgumentError, match=r"names: \['weights'\]"):
        opt.update(params, state, params, weights=3)
    for every in (0, 2.0, -1):
        with pytest.raises(ArgumentError, match="Invalid every value"):
            optim.accumulate(optim.sgd(), every)


# -- caution, averages ---------------------------------------------------------------------------------------------


def test_steps_that_are_skipped():
    opt, bad = optim.skip_not_finite(make("adam")), {"w": np.array([1.0, np.nan])}
    params = {"w": np.ones(2)}
    _, state = opt.update(params, opt.init(params), params)
    for count in (1, 2):
        updates, after = opt.update(bad, state, params)
        np.testing.assert_array_equal(updates["w"], [0, 0])
        assert_trees_close(after.inner, state.inner, rtol=0, atol=0)
        assert after.notfinite_count == after.total_notfinite == count
        state = after
    updates, state = opt.update(params, state, params)
    assert (state.notfinite_count, state.total_notfinite) == (0, 2)
    assert updates["w"].all()


@pytest.mark.parametrize("name", INNER)
def test_averages_leave_training_alone(name):
    params, grads = draw(name, np.float64)
    several = [grads() for _ in range(4)]
    plain = run(make(name), params, several)
    for opt in (optim.ema(make(name), 0.5), optim.swa(make(name), 1, 2)):
        for (p, _), (q, _) in zip(run(opt, params, several), plain, strict=True):
            assert_trees_close(p, q, rtol=0, atol=0)


def test_what_swa_averages():
    params, grads = draw("sgd", np.float64)
    seen = run(optim.swa(optim.sgd(0.1), start=2, every=3), params, [grads() for _ in range(9)])
    trained = [p["w"] for p, _ in seen]
    for t, (_, state) in enumerate(seen, 1):
        due = [trained[i - 1] for i in range(1, t + 1) if i > 2 and (i - 2) % 3 == 0]
        assert state.n_averaged == len(due)
        np.testing.assert_allclose(state.average["w"], np.mean(due, axis=0) if due else params["w"], 1e-12)


def test_a_decay_that_is_a_schedule():
    params, grads = draw("sgd", np.float64)
    opt = optim.ema(optim.sgd(0.1), lambda t: np.minimum(0.9, (1 + t) / (10 + t)))
    average = None
    for t, (p, state) in enumerate(run(opt, params, [grads() for _ in range(4)])):
        decay = min(0.9, (1 + t) / (10 + t))
        average = p["w"] if average is None else decay * average + (1 - decay) * p["w"]
        np.testing.assert_allclose(state.average["w"], average, 1e-12)


def test_lookahead_by_hand():
    params, grads = draw("adam", np.float64)
    several = [grads() for _ in range(6)]
    seen = run(optim.lookahead(optim.adam(0.1), 3, 0.25), params, several)
    inner, p, slow = optim.adam(0.1), params, params
    state = inner.init(p)
    for t, g in enumerate(several, 1):
        updates, state = inner.update(g, state, p)
        p = optim.apply_updates(p, updates)
        if t % 3 == 0:
            p = slow = {k: slow[k] + 0.25 * (p[k] - slow[k]) for k in p}
        assert_trees_close(seen[t - 1][0], p, rtol=1e-12, atol=1e-14)
        assert_trees_close(optim.averaged_params(seen[t - 1][1], p), slow, rtol=1e-12, atol=1e-14)


def test_averages_inside_of_other_states():
    params = {"w": np.ones(2)}
    for opt in (optim.chain(optim.clip_by_value(1.0), optim.ema(optim.sgd())), optim.accumulate(optim.asgd(), 2)):
        averaged = optim.averaged_params(opt.init(params), params)
        assert averaged["w"].shape == (2,)
    with pytest.raises(ArgumentError, match="carries no average"):
        optim.averaged_params(optim.adam().init(params), params)
    for bad in (-0.1, 1.5):
        with pytest.raises(ArgumentError, match="Invalid decay value"):
            optim.ema(optim.sgd(), bad)
    with pytest.raises(ArgumentError, match="swa begins"):
        optim.swa(optim.sgd(), every=0)
    with pytest.raises(ArgumentError, match="lookahead goes"):
        optim.lookahead(optim.sgd(), slow_step_size=2.0)


# -- clipping ------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seeds, st.floats(1e-3, 10), st.sampled_from([1.0, 2.0, 3.0, np.inf]), st.sampled_from([np.float32, np.float64]))
def test_clipping_by_norm(seed, bound, order, dtype):
    """No longer than the bound, in the same direction; short gradients stay as they are."""
    _, grads = draw("sgd", dtype, seed)
    g = grads()
    clipped, _ = optim.clip_by_global_norm(bound, order).update(g, ())
    flat, short = (np.concatenate([np.ravel(x) for x in leaves(t)]) for t in (g, clipped))
    norm = np.linalg.norm(flat.astype(float), order)
    assert optim.global_norm(g, order) == pytest.approx(norm, rel=1e-5)
    assert optim.global_norm(clipped, order) <= bound * (1 + 1e-5)
    np.testing.assert_allclose(short, flat * min(1, bound / (norm + 1e-6)), 1e-5)
    assert short.dtype == dtype


def test_norms_of_little():
    assert optim.global_norm({}) == 0
    assert optim.global_norm({"a": np.ones((0, 3)), "b": None}) == 0
    clipped, _ = optim.clip_by_global_norm(1.0).update({"a": np.zeros(2), "b": None}, ())
    np.testing.assert_array_equal(clipped["a"], [0, 0])
    assert clipped["b"] is None


def test_decay_before_an_optimizer_is_its_own():
    params, grads = draw("adam", np.float64)
    several = [grads() for _ in range(3)]
    before = run(optim.chain(optim.add_decayed_weights(0.1), optim.adam(0.1)), params, several)
    assert_trees_close(before[-1][0], run(optim.adam(0.1, weight_decay=0.1), params, several)[-1][0], rtol=0, atol=0)
    with pytest.raises(ArgumentError, match="reads the parameters"):
        optim.add_decayed_weights(0.1).update(params, ())
    with pytest.raises(TreeError, match="tuple of the states"):
        optim.chain(optim.sgd(), optim.sgd()).update(params, (), params)


# -- hyperparameters in the state ----------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds, st.sampled_from([np.float32, np.float64]))
def test_injected_numbers_do_what_given_ones_do(seed, dtype):
    params, grads = draw("adam", dtype, seed)
    several = [grads() for _ in range(3)]
    options = {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "amsgrad": True}
    injected = run(optim.inject_hyperparams(optim.adamw)(**options), params, several)
    for (p, state), (q, inner) in zip(injected, run(optim.adamw(**options), params, several), strict=True):
        assert_trees_close((p, state.inner), (q, inner), rtol=0, atol=0)
    assert state.hyperparams["betas"] == (0.8, 0.9)
    assert set(state.hyperparams) == {"lr", "betas", "weight_decay"}


def test_a_compiled_step_takes_another_learning_rate():
    opt = optim.inject_hyperparams(optim.sgd)(lr=0.1, momentum=lambda t: 0.5 + 0.1 * t, weight_decay=0.0)
    params = {"w": np.ones(3)}

    @fnad.jit
    def step(params, state):
        updates, state = opt.update(params, state, params)
        return optim.apply_updates(params, updates), state

    state = opt.init(params)
    for lr in (0.1, 0.5, 0.25):
        state.hyperparams["lr"] = np.array(lr)
        want = optim.sgd(lr, 0.5 + 0.1 * state.step).update(params, state.inner, params)
        new, after = step(params, state)
        assert_trees_close((new, after.inner), (optim.apply_updates(params, want[0]), want[1]))
        assert after.hyperparams["momentum"] == pytest.approx(0.5 + 0.1 * state.step)
        params, state = new, after
    assert len(step._entries) == 1  # recorded once


def test_counts_stay_out_of_the_state():
    opt = optim.inject_hyperparams(optim.muon, static_args=("ns_steps",))(lr=0.1, ns_steps=2)
    p = np.eye(2)
    updates, state = fnad.jit(opt.update)(p, opt.init(p), p)
    assert set(state.hyperparams) == {"lr"}
    assert_trees_close(updates, optim.muon(0.1, ns_steps=2).update(p, optim.muon().init(p), p)[0])


def test_a_plateau_drives_an_optimizer():
    plateau, opt = optim.schedules.reduce_lr_on_plateau(patience=0, factor=0.5), optim.inject_hyperparams(optim.sgd)(lr=1.0)
    p, s = np.array([1.0]), plateau.init(1.0)
    state = opt.init(p)
    for metric, want in ((2.0, -1.0), (2.0, -0.5), (1.0, -0.5), (1.0, -0.25)):
        lr, s = plateau.update(metric, s)
        state.hyperparams["lr"] = lr
        updates, state = opt.update(np.array([1.0]), state, p)
        assert updates == [want]


# -- further gradients, closures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_sam_by_hand(adaptive, compiled):
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=3), "b": rng.normal(size=(2, 2))}
    gradient = fnad.grad(lambda p: np.sum(p["w"] ** 4) + np.sum(np.sin(p["b"])))
    opt, g = optim.sam(optim.adam(0.1), 0.3, adaptive), gradient(params)
    update = lambda p, s: opt.update(gradient(p), s, p, grad_fn=gradient)
    updates, state = (fnad.jit(update) if compiled else update)(params, opt.init(params))
    size = {k: p if adaptive else np.ones_like(p) for k, p in params.items()}
    norm = np.sqrt(sum(np.sum((size[k] * g[k]) ** 2) for k in g))
    worst = {k: p + 0.3 * size[k] ** 2 * g[k] / norm for k, p in params.items()}
    want = optim.adam(0.1).update(gradient(worst), optim.adam().init(params), params)
    assert_trees_close((updates, state), want, rtol=1e-10)
    with pytest.raises(ArgumentError, match="second gradient"):
        opt.update(g, opt.init(params), params)
    flat, _ = opt.update(g, opt.init(params), params, grad_fn=lambda p: fnad.tree.map(np.zeros_like, p))
    assert not any(x.any() for x in leaves(flat))


def test_a_closure_goes_through_what_is_around():
    params = {"x": np.array([-1.2, 1.0])}
    loss = fnad.value_and_grad(lambda p: (1 - p["x"][0]) ** 2 + 100 * (p["x"][1] - p["x"][0] ** 2) ** 2)
    opt = optim.ema(optim.lbfgs(max_iter=100, line_search_fn="strong_wolfe"), 0.5)
    (new, state), *_ = run(opt, params, [None], closure=fnad.jit(loss))
    assert loss(new)[0] < 1e-8
    assert state.inner.func_evals > state.inner.n_iter > 5


def test_lbfgs_minimises_as_scipy_does():
    """A quadratic of 12 unknowns in several leaves and both precisions, to its minimum."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(12, 12))
    a, b = a @ a.T + np.eye(12), rng.normal(size=12)
    for dtype, tolerance in ((np.float64, 1e-6), (np.float32, 1e-2)):
        params = {"u": np.zeros((2, 3), dtype), "v": [np.zeros(6, dtype), None]}

        def loss(p, dtype=dtype):
            x = np.concatenate([p["u"].reshape(-1), p["v"][0]])
            return x @ (a.astype(dtype) @ x) / 2 - b.astype(dtype) @ x

        opt = optim.lbfgs(1, 200, None, 1e-10, 1e-14, 5, "strong_wolfe")
        before = leaves(params)
        updates, state = opt.update(None, opt.init(params), params, closure=fnad.value_and_grad(loss))
        new = optim.apply_updates(params, updates)
        np.testing.assert_allclose(np.r_[new["u"].reshape(-1), new["v"][0]], np.linalg.solve(a, b), tolerance, tolerance)
        assert len(state.ro) <= 5
        assert not any(x.any() for x in before)
        assert new["u"].dtype == state.d.dtype == dtype


def test_lbfgs_at_a_minimum_and_with_nothing():
    closure = fnad.value_and_grad(lambda p: sum(np.sum(x * x) for x in fnad.tree.leaves(p)) + 0.0)
    opt = optim.lbfgs()
    for params in ({"x": np.zeros(3)}, {"x": np.zeros(0)}):
        updates, state = opt.update(None, opt.init(params), params, closure=closure)
        assert not updates["x"].any()
        assert (state.func_evals, state.n_iter) == (1, 0)


def test_what_lbfgs_cannot_do():
    p, opt = np.ones(2), optim.lbfgs()
    closure = fnad.value_and_grad(lambda p: np.sum(p**2))
    with pytest.raises(ArgumentError, match="evaluates loss and gradient itself"):
        opt.update(p, opt.init(p), p)
    with pytest.raises(TreeError, match="LBFGSState"):
        opt.update(p, optim.sgd().init(p), p, closure=closure)
    with pytest.raises(ConcretizationError, match="compile the closure"):
        fnad.jit(lambda p, s: opt.update(None, s, p, closure=closure))(p, opt.init(p))


def test_parameters_are_needed():
    p = np.ones(2)
    for opt in (optim.accumulate(optim.sgd(), 2), optim.ema(optim.sgd()), optim.lookahead(optim.sgd()), optim.sam(optim.sgd())):
        with pytest.raises(ArgumentError, match="reads the parameters"):
            opt.update(p, opt.init(p))


# -- the line search -------------------------------------------------------------------------------------------------

LINES = {  # f with f'(0) < 0 and a minimum ahead; the first two of More & Thuente
    "far": lambda t: -t / (t**2 + 2),
    "flat": lambda t: (t + 0.004) ** 5 - 2 * (t + 0.004) ** 4,
    "cosine": lambda t: np.cos(3 * t + 0.5) + t / 5,
    "steep": lambda t: np.exp(4 * t) - 6 * t,
    "quartic": lambda t: (t - 3) ** 4 - t,
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0, 100.0])
def test_the_line_search_ends_where_the_strong_wolfe_conditions_hold(name, first):
    f = LINES[name]
    calls = []

    def along(t):
        calls.append(t)
        loss, slope = fnad.value_and_grad(f)(float(t))
        return loss, np.array([slope])

    loss, slope = fnad.value_and_grad(f)(0.0)
    found, gradient, t, evaluations = strong_wolfe(along, first, np.ones(1), loss, np.array([slope]), slope, 1e-12, 60)
    assert evaluations == len(calls)
    assert t in calls
    assert found == f(t) <= loss + 1e-4 * t * slope
    assert abs(gradient[0]) <= 0.9 * abs(slope)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_line_search_that_must_stop(most):
    """It gives the better one of where it began and where it got to."""
    f = LINES["far"]
    along = lambda t: (f(float(t)), np.array([fnad.grad(f)(float(t))]))
    slope = fnad.grad(f)(0.0)
    found, _, t, evaluations = strong_wolfe(along, 1e-6, np.ones(1), 0.0, np.array([slope]), slope, 1e-12, most)
    assert evaluations == most + 1
    assert found == f(t) < 0


# -- mistakes ------------------------------------------------------------------------------------------------------

AROUND = {
    "chain": lambda x: optim.chain(x),
    "masked": lambda x: optim.masked(x, True),
    "partition": lambda x: optim.partition({"a": x}, "a"),
    "accumulate": lambda x: optim.accumulate(x, 2),
    "skip_not_finite": optim.skip_not_finite,
    "ema": optim.ema,
    "swa": optim.swa,
    "lookahead": optim.lookahead,
    "sam": optim.sam,
}


@pytest.mark.parametrize("name", AROUND)
def test_what_is_no_optimizer(name):
    for wrong in (0.9, optim.sgd, [optim.sgd(0.1)]):
        with pytest.raises(ArgumentError, match=f"{name} goes around optimizers\n  got instead: (float|function|list)"):
            AROUND[name](wrong)


@pytest.mark.parametrize("name", ["accumulate", "skip_not_finite", "ema", "swa", "lookahead"])
def test_the_state_of_something_else(name):
    p = np.ones(2)
    with pytest.raises(TreeError, match=rf"the state of {name} is an? \w+State\n  got state: AdamState"):
        WRAPPED[name](optim.adam(0.1)).update(p, optim.adam(0.1).init(p), p)
    with pytest.raises(TreeError, match="the state of inject_hyperparams is an InjectState"):
        optim.inject_hyperparams(optim.sgd)(lr=0.1).update(p, optim.sgd(0.1).init(p), p)


def test_numbers_that_are_none():
    for wrong in ("0.1", 1j):
        with pytest.raises(DTypeError, match="Invalid learning rate: it must be a real number"):
            optim.sgd(wrong)


def test_labels_of_inner_nodes_and_frozen_groups():
    """A label stands for all leaves below it; what is frozen stays, whatever its gradient is."""
    params = {"base": {"w": np.ones(2), "b": [np.ones(1), None]}, "head": np.ones(2)}
    grads = {"base": {"w": np.full(2, np.nan), "b": [np.ones(1), None]}, "head": np.full(2, 2.0)}
    parts = {"frozen": optim.set_to_zero(), "trained": optim.sgd(0.1)}
    whole = {"base": {"w": "frozen", "b": ["frozen", "frozen"]}, "head": "trained"}
    for labels in ({"base": "frozen", "head": "trained"}, whole, {"base": {"w": "frozen", "b": "frozen"}, "head": "trained"}):
        opt = optim.partition(parts, labels)
        for wrap in (lambda f: f, fnad.jit):
            updates, _ = wrap(opt.update)(grads, opt.init(params), params)
            assert_trees_close(optim.apply_updates(params, updates), {**params, "head": np.full(2, 0.8)})
    with pytest.raises(TreeError, match="labels"):
        optim.partition(parts, {"base": "frozen"}).init(params)
