"""Bodies that combine a traced value they close over with a plain array, under every nesting of transforms and jit."""

import numpy as np
import pytest

import fnad

rng = np.random.default_rng(0)
MASK, XS, EYE, ONES = np.tri(3), rng.normal(size=(4, 3)), np.eye(3), np.ones(3)

LOOPS = {
    "product": lambda w: fnad.scan(lambda u, _: (np.tanh(u @ (w * MASK)), None), ONES, None, length=3)[0],
    "where": lambda w: fnad.scan(lambda u, x: (np.tanh(u @ np.where(MASK > 0, w, 0) + x), u), ONES, XS)[1],
    "tril": lambda w: fnad.scan(lambda u, x: (np.tanh(np.tril(w) @ u) + x, None), ONES, XS)[0],
    "fori": lambda w: fnad.fori_loop(0, 3, lambda i, u: np.tanh((w + 1e-3 * EYE) @ u), ONES),
    "map": lambda w: fnad.map(lambda x: np.tanh((w * EYE) @ x), XS),
    "cond": lambda w: fnad.cond(w[0, 0] > 0, lambda u: (w * MASK) @ u, lambda u: (w + EYE) @ u, ONES),
    "while": lambda w: fnad.while_loop(lambda c: c[1] < 3, lambda c: (np.tanh((w * MASK) @ c[0]), c[1] + 1), (ONES, 0), max_steps=4)[0],
    "nested": lambda w: fnad.scan(
        lambda u, x: (fnad.scan(lambda v, _: (np.tanh((w * MASK) @ v + EYE @ x), None), u, None, length=2)[0], None), ONES, XS
    )[0],
}


@pytest.mark.parametrize("name", LOOPS)
def test_plain_arrays_meet_traced_values_in_bodies(name):
    def f(w):
        return np.sum(LOOPS[name](w))

    w = rng.normal(size=(3, 3))
    want = fnad.grad(f)
    for g in (fnad.jit(want), fnad.grad(fnad.jit(f)), lambda w: fnad.jit(fnad.vmap(want))(np.stack([w, -w]))[0]):
        np.testing.assert_allclose(g(w), want(w), rtol=1e-10)
    along = fnad.jit(lambda w: fnad.jvp(f, (w,), (np.ones((3, 3)),))[1])(w)
    np.testing.assert_allclose(along, np.sum(want(w)), rtol=1e-10)
    if name != "while":
        np.testing.assert_allclose(fnad.jit(fnad.hessian(f))(w), fnad.hessian(f)(w), rtol=1e-9, atol=1e-12)
