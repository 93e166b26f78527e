"""`fnad.random`: NumPy's bits, the right distributions, the same numbers under every transform, and derivatives of draws."""

import os
import pathlib
import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
import scipy.stats as stats

import fnad
from fnad import random
from fnad.compiler.pipeline import Executable
from fnad.compiler.program import Host
from fnad.compiler.simplify import simplify
from fnad.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from fnad.primitives.random import gamma_slope

KEY = random.key(20)
KEYS = random.split(KEY, 3)
N = 4000
COV = np.array([[2.0, 0.6], [0.6, 0.5]])

CONTINUOUS = {  # draws, and the distribution function they must have
    "uniform": (lambda k, n, d: random.uniform(k, n, d), stats.uniform),
    "uniform between": (lambda k, n, d: random.uniform(k, n, d, -1.0, 3.0), stats.uniform(-1, 4)),
    "normal": (lambda k, n, d: random.normal(k, n, d), stats.norm),
    "truncated_normal": (lambda k, n, d: random.truncated_normal(k, -0.5, 2.0, n, d), stats.truncnorm(-0.5, 2)),
    "truncated_normal above": (lambda k, n, d: random.truncated_normal(k, 3.0, 5.0, n, d), stats.truncnorm(3, 5)),
    "exponential": (lambda k, n, d: random.exponential(k, n, d), stats.expon),
    "laplace": (lambda k, n, d: random.laplace(k, n, d), stats.laplace),
    "gumbel": (lambda k, n, d: random.gumbel(k, n, d), stats.gumbel_r),
    "logistic": (lambda k, n, d: random.logistic(k, n, d), stats.logistic),
    "cauchy": (lambda k, n, d: random.cauchy(k, n, d), stats.cauchy),
    "pareto": (lambda k, n, d: random.pareto(k, 2.5, n, d), stats.pareto(2.5)),
    "weibull_min": (lambda k, n, d: random.weibull_min(k, 2.0, 1.5, n, d), stats.weibull_min(1.5, scale=2)),
    "rayleigh": (lambda k, n, d: random.rayleigh(k, 2.0, n, d), stats.rayleigh(scale=2)),
    "maxwell": (lambda k, n, d: random.maxwell(k, n, d), stats.maxwell),
    "double_sided_maxwell": (lambda k, n, d: np.abs(random.double_sided_maxwell(k, 1.0, 2.0, n, d) - 1) / 2, stats.maxwell),
    "lognormal": (lambda k, n, d: random.lognormal(k, 0.5, n, d), stats.lognorm(0.5)),
    "triangular": (lambda k, n, d: random.triangular(k, -1.0, 0.0, 3.0, n, d), stats.triang(0.25, -1, 4)),
    "gamma": (lambda k, n, d: random.gamma(k, 2.5, n, d), stats.gamma(2.5)),
    "gamma small": (lambda k, n, d: random.gamma(k, 0.3, n, d), stats.gamma(0.3)),
    "loggamma": (lambda k, n, d: random.loggamma(k, 0.7, n, d), stats.loggamma(0.7)),
    "beta": (lambda k, n, d: random.beta(k, 2.0, 0.5, n, d), stats.beta(2, 0.5)),
    "dirichlet": (lambda k, n, d: random.dirichlet(k, np.array([1.0, 0.5, 2.5]), n, d)[..., 1][()], stats.beta(0.5, 3.5)),
    "chisquare": (lambda k, n, d: random.chisquare(k, 3.0, n, d), stats.chi2(3)),
    "t": (lambda k, n, d: random.t(k, 3.0, n, d), stats.t(3)),
    "f": (lambda k, n, d: random.f(k, 3.0, 7.0, n, d), stats.f(3, 7)),
    "generalized_normal": (lambda k, n, d: random.generalized_normal(k, 3.0, n, d), stats.gennorm(3)),
    "multivariate_normal": (lambda k, n, d: random.multivariate_normal(k, np.ones(2), COV, n, d)[..., 1][()], stats.norm(1, 0.5**0.5)),
    "ball": (lambda k, n, d: np.sum(random.ball(k, 3, shape=n, dtype=d) ** 2, -1) ** 1.5, stats.uniform),
    "orthogonal": (lambda k, n, d: random.orthogonal(k, 3, n, d)[..., 1, 2][()], stats.uniform(-1, 2)),
}
THREE = stats.rv_discrete(values=([0, 1, 2], [0.1, 0.6, 0.3]))
DISCRETE = {
    "randint": (lambda k, n: random.randint(k, n, -2, 5), stats.randint(-2, 5)),
    "bernoulli": (lambda k, n: random.bernoulli(k, 0.3, n), stats.bernoulli(0.3)),
    "rademacher": (lambda k, n: random.rademacher(k, n) == 1, stats.bernoulli(0.5)),
    "geometric": (lambda k, n: random.geometric(k, 0.3, n), stats.geom(0.3)),
    "poisson small": (lambda k, n: random.poisson(k, 3.0, n), stats.poisson(3)),
    "poisson large": (lambda k, n: random.poisson(k, 20.0, n), stats.poisson(20)),
    "binomial small": (lambda k, n: random.binomial(k, 20, 0.2, n, int), stats.binom(20, 0.2)),
    "binomial large": (lambda k, n: random.binomial(k, 60, 0.7, n, int), stats.binom(60, 0.7)),
    "categorical": (
        lambda k, n: random.categorical(k, np.log([0.1, 0.6, 0.3]), shape=n),
        stats.rv_discrete(values=([0, 1, 2], [0.1, 0.6, 0.3])),
    ),
    "choice": (lambda k, n: random.choice(k, 4, n), stats.randint(0, 4)),
    "choice by p": (
        lambda k, n: random.choice(k, 3, n, p=np.array([0.1, 0.6, 0.3])),
        stats.rv_discrete(values=([0, 1, 2], [0.1, 0.6, 0.3])),
    ),
}
DRAWS = {name: lambda k, n, f=f: f(k, n, float) for name, (f, _) in CONTINUOUS.items()} | {name: f for name, (f, _) in DISCRETE.items()}
DRAWS |= {
    "split": lambda k, n: random.split(k, n),
    "fold_in": lambda k, n: random.fold_in(k, 7),
    "bits": lambda k, n: random.bits(k, n),
    "bits of 8": lambda k, n: random.bits(k, n, np.uint8),
    "permutation": lambda k, n: random.permutation(k, np.arange(12.0).reshape(3, 4), 1),
    "permutation of each": lambda k, n: random.permutation(k, np.arange(12.0).reshape(3, 4), 1, independent=True),
    "choice without": lambda k, n: random.choice(k, np.arange(9.0), (3,), replace=False, p=np.arange(9.0)),
}
each_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


# -- keys and bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True])
def test_bits_are_those_of_numpy(jit):
    run = (lambda f: fnad.jit(f)) if jit else (lambda f: f)
    for seed in (0, 1, 2**64 - 1, 2**100 + 17):
        key, generator = random.key(seed), np.random.Philox(key=seed)
        np.testing.assert_array_equal(run(lambda k: random.bits(k, 13))(key), generator.random_raw(13))
        for dtype in (np.float64, np.float32):
            rng = np.random.Generator(np.random.Philox(key=seed))
            np.testing.assert_array_equal(run(lambda k: random.uniform(k, (3, 5), dtype))(key), rng.random((3, 5), dtype))  # noqa: B023


def test_many_keys_at_once_are_those_of_numpy():
    keys = random.split(KEY, 40)
    np.testing.assert_array_equal(fnad.vmap(random.split)(keys)[:3], [random.split(k) for k in keys[:3]])
    np.testing.assert_array_equal(
        fnad.vmap(random.fold_in)(keys, np.arange(40))[:3], [random.fold_in(k, i) for i, k in enumerate(keys[:3])]
    )
    got = fnad.vmap(lambda k: random.bits(k, 9))(keys)
    np.testing.assert_array_equal(got, [np.random.Philox(key=k).random_raw(9) for k in keys])


def test_keys():
    np.testing.assert_array_equal(random.key(-1), np.full(2, 2**64 - 1, np.uint64))
    np.testing.assert_array_equal(random.key(np.int32(3)), random.PRNGKey(3))
    for seed in (-5, 5):
        np.testing.assert_array_equal(fnad.jit(random.key)(seed), random.key(seed))
        np.testing.assert_array_equal(fnad.jit(random.fold_in)(KEY, seed), random.fold_in(KEY, seed))
    np.testing.assert_array_equal(random.split(KEY, (2, 3)).reshape(6, 2), random.split(KEY, 6))
    many = np.concatenate([random.split(KEY, 100), [random.fold_in(KEY, i) for i in range(100)], [KEY], random.bits(KEY, (4, 2))])
    assert len({tuple(k) for k in many.tolist()}) == len(many)
    grandchildren = random.split(random.split(KEY)[0])
    assert len({tuple(k) for k in np.concatenate([random.split(KEY), grandchildren]).tolist()}) == 4
    with pytest.raises(DTypeError, match=r"random\.key"):
        random.normal(np.zeros(2, np.uint32))
    with pytest.raises(DTypeError, match="integer"):
        random.key(1.5)
    with pytest.raises(DTypeError, match="integer"):
        random.fold_in(KEY, 1.5)
    with pytest.raises(ArgumentError, match="uint8"):
        random.bits(KEY, 2, np.int32)


@hypothesis.given(st.integers(-(2**70), 2**130), st.integers(0, 40), st.integers(0, 40))
@hypothesis.settings(max_examples=20, deadline=None)
def test_a_longer_draw_begins_like_a_shorter_one(seed, n, m):
    key = random.key(seed)
    for draw in (random.bits, random.uniform, random.normal, random.split):
        np.testing.assert_array_equal(draw(key, n)[:m], draw(key, m)[:n])
    a = np.linspace(0.1, 9.0, max(n, m))
    np.testing.assert_array_equal(random.gamma(key, a[:n])[:m], random.gamma(key, a[:m])[:n])


PROGRAM = """
import numpy as np, fnad
from fnad import random
key = random.key(3)
f = fnad.jit(lambda k: (random.normal(k, (300, 500), np.float32), random.gamma(k, 2.0, 50), random.permutation(k, 30)))
print([hash(x.tobytes()) for x in f(key)], hash(random.bits(key, 999).tobytes()))
"""


def test_processes_and_threads_make_no_difference():
    """PYTHONHASHSEED only makes `hash` of bytes repeatable."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(pathlib.Path(fnad.__file__).parent.parent)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**environment, "NUMBA_NUM_THREADS": n}, capture_output=True, text=True, check=True
        )
        for n in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != ""


# -- distributions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, dtype):
    draw, want = CONTINUOUS[name]
    x = draw(KEY, (N,), dtype)
    assert x.dtype == dtype
    assert x.shape == (N,)
    assert stats.kstest(x, want.cdf).pvalue > 1e-3
    other = draw(random.fold_in(KEY, 1), (N,), dtype)
    assert abs(stats.spearmanr(x, other).statistic) < 0.06
    assert abs(stats.spearmanr(x[1:], x[:-1]).statistic) < 0.06


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, want = DISCRETE[name]
    x = np.asarray(draw(KEY, (N,)), int)
    values, counts = np.unique(x, return_counts=True)
    expected = N * want.pmf(values)
    assert expected.sum() > 0.99 * N
    common = expected > 5
    seen = np.append(counts[common], N - counts[common].sum())
    chance = np.append(expected[common], N - expected[common].sum())
    some = chance > 1
    assert stats.chisquare(seen[some], chance[some] * seen[some].sum() / chance[some].sum()).pvalue > 1e-3


def test_normal_numbers_reach_far():
    x = random.normal(KEY, (1 << 18,))
    assert 4 < np.max(x) < 6
    assert np.all(np.isfinite(random.normal(KEY, (1 << 18,), np.float16)))
    z = random.normal(KEY, (N,), np.complex64)
    assert z.dtype == np.complex64
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 0.05
    assert np.all(random.uniform(KEY, (1 << 16,), np.float16) < 1)
    assert np.all(random.uniform(KEY, (1 << 16,), np.float32, 1.0, 1.0 + 2**-20) < np.float32(1 + 2**-20))


def test_truncation_far_out():
    x = random.truncated_normal(KEY, np.array([[20.0], [-31.0]]), np.array([[21.0], [-30.0]]), (2, N))
    assert np.all((x[0] >= 20) & (x[0] <= 21) & (x[1] >= -31) & (x[1] <= -30))
    assert stats.kstest((x[0] - 20) * 20, stats.expon.cdf).pvalue > 1e-6
    assert len(np.unique(x)) > 1.9 * N


def test_integers():
    info = np.iinfo(np.int64)
    x = random.randint(KEY, (N,), info.min, info.max)
    assert np.mean(x < 0) == pytest.approx(0.5, abs=0.05)
    assert set(random.randint(KEY, (200,), 254, 256, np.uint8).tolist()) == {254, 255}
    big = random.randint(KEY, (200,), 2**64 - 3, 2**64 - 1, np.uint64)
    assert set(big.tolist()) == {2**64 - 3, 2**64 - 2}
    low = np.array([0, 10, -5])
    got = fnad.jit(lambda a, b: random.randint(KEY, (100, 3), a, b))(low, low + 2)
    np.testing.assert_array_equal(got, random.randint(KEY, (100, 3), low, low + 2))
    assert np.all((got >= low) & (got < low + 2))


def test_permutations():
    x = np.arange(20.0).reshape(4, 5)
    orders = [tuple(random.permutation(k, 4)) for k in random.split(KEY, 400)]
    assert len(set(orders)) == 24
    got = random.permutation(KEY, x, axis=1)
    np.testing.assert_array_equal(np.sort(got, 1), x)
    assert len({tuple(np.argsort(r)) for r in got}) == 1
    each = random.permutation(KEY, x, axis=1, independent=True)
    np.testing.assert_array_equal(np.sort(each, 1), x)
    assert len({tuple(np.argsort(r)) for r in each}) > 1
    gradient = fnad.grad(lambda x: np.sum(random.permutation(KEY, x) * x[:, :1]))(x)
    assert gradient.shape == x.shape


def test_choice_without_replacement_follows_p():
    p = np.array([0.5, 0.25, 0.25, 0.0])
    first = [random.choice(k, 4, (2,), replace=False, p=p) for k in random.split(KEY, 1500)]
    assert np.mean([f[0] == 0 for f in first]) == pytest.approx(0.5, abs=0.05)
    assert all(f[0] != f[1] and 3 not in f for f in first)
    assert random.choice(KEY, np.eye(3), (2,), axis=1).shape == (3, 2)


# -- transforms ----------------------------------------------------------------------------------------------------------


@each_draw
def test_vmap_gives_the_streams_of_a_loop(draw):
    want = np.stack([draw(k, (5,)) for k in KEYS])
    np.testing.assert_allclose(fnad.vmap(lambda k: draw(k, (5,)))(KEYS), want, 1e-12)


def agree(f, *args):
    want, got = f(*args), fnad.jit(f)(*args)
    assert got.dtype == want.dtype
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, 1e-12)


@each_draw
def test_jit_gives_the_same(draw):
    agree(lambda k: draw(k, (3, 2)), KEY)


@pytest.mark.parametrize("name", ["normal", "laplace", "truncated_normal", "randint", "rademacher", "gamma", "split"])
def test_jit_gives_the_same_single_numbers_and_batches(name):
    agree(lambda k: DRAWS[name](k, ()), KEY)
    agree(fnad.vmap(lambda k: DRAWS[name](k, (2,))), KEYS)


NATIVE = ["uniform", "normal", "exponential", "laplace", "gumbel", "logistic", "cauchy", "rayleigh", "bernoulli", "randint", "bits"]


@pytest.mark.parametrize("name", NATIVE)
def test_compiled_without_the_host(name):
    graph = fnad.make_graph(lambda k: DRAWS[name](k, (6,)))(KEY)
    assert not any(isinstance(step, Host) for step in Executable(simplify(graph)).steps)


def test_scan_carries_keys():
    def step(key, _):
        key, used = random.split(key)
        return key, random.normal(used, (2,))

    key, want = KEY, []
    for _ in range(4):
        key, x = step(key, None)
        want.append(x)
    for run in (fnad.scan, fnad.jit(lambda k: fnad.scan(step, k, None, 4))):
        end, got = run(step, KEY, None, 4) if run is fnad.scan else run(KEY)
        np.testing.assert_array_equal(end, key)
        np.testing.assert_allclose(got, np.stack(want), 1e-12)


def test_parameters_are_batched_with_one_key():
    a = np.array([0.5, 2.0, 30.0])
    for draw in (random.gamma, random.poisson, random.bernoulli, random.pareto):
        p = a / 40 if draw is random.bernoulli else a
        np.testing.assert_allclose(fnad.vmap(lambda a: draw(KEY, a, (4,)))(p), np.stack([draw(KEY, x, (4,)) for x in p]))  # noqa: B023
    np.testing.assert_array_equal(fnad.vmap(random.gamma)(KEYS, a), [random.gamma(k, x) for k, x in zip(KEYS, a, strict=True)])


# -- derivatives ---------------------------------------------------------------------------------------------------------


def test_reparameterised_draws_differentiate():
    matrix = lambda a, b: np.stack([np.stack([2 + a, a]), np.stack([a, b])])
    draws = {
        "uniform": lambda a, b: random.uniform(KEY, (3,), minval=a, maxval=b),
        "truncated_normal": lambda a, b: random.truncated_normal(KEY, a, b, (3,)),
        "weibull_min": lambda a, b: random.weibull_min(KEY, a, b, (3,)),
        "double_sided_maxwell": lambda a, b: random.double_sided_maxwell(KEY, a, b, (3,)),
        "triangular": lambda a, b: random.triangular(KEY, a, 0.9, b, (3,)),
        "multivariate_normal": lambda a, b: random.multivariate_normal(KEY, np.stack([a, b]), matrix(a, b)),
    }
    for f in draws.values():
        fnad.testing.check_grads(f, (np.float64(0.4), np.float64(1.7)), order=1)


@pytest.mark.parametrize("a", [0.02, 0.6, 1.0, 3.0, 200.0])
@pytest.mark.parametrize("quantile", [0.02, 0.5, 0.97])
def test_gamma_draws_move_along_their_quantile(a, quantile):
    x = float(stats.gamma(a).ppf(quantile))
    with mpmath.workdps(40):
        h = mpmath.mpf(a) * mpmath.mpf(10) ** -12
        by_a = (mpmath.gammainc(a + h, 0, x, regularized=True) - mpmath.gammainc(a - h, 0, x, regularized=True)) / (2 * h)
        want = float(-by_a * mpmath.gamma(a) / (mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x)))
    np.testing.assert_allclose(gamma_slope(a, x, log=False), want, 1e-12)
    np.testing.assert_allclose(gamma_slope(a, np.log(x), log=True), want / x, 1e-12)


def test_gradients_of_draws_made_of_gammas():
    n = 20000
    expectations = {  # of what, by a parameter, and the exact derivative of the expectation
        "gamma": (lambda a: random.gamma(KEY, a, (n,)) ** 2, 1.5, 2 * 1.5 + 1),
        "loggamma": (lambda a: random.loggamma(KEY, a, (n,)), 0.5, np.pi**2 / 2),
        "beta": (lambda a: random.beta(KEY, a, 2.0, (n,)), 1.0, 2 / 9),
        "dirichlet": (lambda a: random.dirichlet(KEY, np.stack([a, 1.0, 1.0]), (n,))[:, 0], 1.0, 2 / 9),
        "chisquare": (lambda a: random.chisquare(KEY, a, (n,)), 3.0, 1.0),
        "f": (lambda a: random.f(KEY, 4.0, a, (n,)), 8.0, -2 / 36),
        "t": (lambda a: random.t(KEY, a, (n,)) ** 2, 12.0, -2 / 100),
    }
    for name, (f, at, want) in expectations.items():
        for run in (lambda f: f, fnad.jit):
            got = run(fnad.grad(lambda a: np.mean(f(a))))(np.float64(at))  # noqa: B023
            np.testing.assert_allclose(got, want, 0.08, err_msg=name)
        np.testing.assert_allclose(fnad.jvp(lambda a: np.mean(f(a)), (np.float64(at),), (1.0,))[1], got, 1e-10)  # noqa: B023


def test_tiny_gammas():
    slope = fnad.grad(lambda a: random.loggamma(KEY, a))
    assert random.gamma(KEY, 1e-5) == 0
    assert random.loggamma(KEY, 1e-5) < -1000
    assert slope(np.float64(1e-5)) > 1e5
    assert fnad.grad(lambda a: random.gamma(KEY, a))(np.float64(1e-5)) == 0
    assert random.gamma(KEY, 0.0) == 0
    with pytest.raises(UnsupportedError, match="no second"):
        fnad.grad(slope)(np.float64(2.0))


# -- errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: random.normal(KEY, -1), ArgumentError, "shape"),
        (lambda: random.normal(KEY, (2.0,)), ArgumentError, "shape"),
        (lambda: random.normal(KEY, 2, int), DTypeError, "float32"),
        (lambda: random.gamma(KEY, -1.0), ArgumentError, "negative"),
        (lambda: random.gamma(KEY, np.ones(3), (2,)), ShapeError, "broadcast"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "alpha"),
        (lambda: random.poisson(KEY, -1.0), ArgumentError, "lam"),
        (lambda: random.bernoulli(KEY, 1.5), ArgumentError, r"\[0, 1\]"),
        (lambda: random.binomial(KEY, -1, 0.5), ArgumentError, "n is"),
        (lambda: random.geometric(KEY, 0.0), ArgumentError, "p lies"),
        (lambda: random.truncated_normal(KEY, 1.0, 1.0), ArgumentError, "below"),
        (lambda: random.triangular(KEY, 1.0, 0.0, 2.0), ArgumentError, "mode"),
        (lambda: random.randint(KEY, 3, 2, 2), ArgumentError, "above"),
        (lambda: random.randint(KEY, 3, 0, 300, np.uint8), ArgumentError, "uint8 holds"),
        (lambda: random.randint(KEY, 3, 0.0, 3.0), DTypeError, "integers"),
        (lambda: random.choice(KEY, 3, 4, replace=False), ArgumentError, "entries"),
        (lambda: random.choice(KEY, 3, p=np.ones(2)), ShapeError, "probability per entry"),
        (lambda: random.permutation(KEY, 1.5), DTypeError, "array or an integer"),
        (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)), ShapeError, "cov"),
        (lambda: random.orthogonal(KEY, 0), ArgumentError, "positive"),
        (lambda: random.categorical(KEY, np.ones((2, 3)), shape=(3,)), ShapeError, "broadcast"),
    ],
)
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()
