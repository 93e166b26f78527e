"""Every function in the dispatch table has NumPy's own signature, and refuses to write into out=."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fnad
from fnad.core import dispatch
from fnad.errors import FnadError, InPlaceError

X = np.array([0.3, 0.6, 0.9])
SQUARE = np.array([[2.0, 0.5], [0.5, 1.0]])
fnad.numpy.load_all()
FUNCTIONS = [f for f in dispatch.ROWS if str(getattr(f, "__module__", "")).startswith("numpy") and not isinstance(f, np.ufunc)]
UFUNCS = [f for f in dispatch.ROWS if isinstance(f, np.ufunc) and getattr(np, f.__name__, None) is f]


def signature(f):
    try:
        return [(p.name, p.kind) for p in inspect.signature(f).parameters.values()]
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("function", FUNCTIONS, ids=dispatch.name_of)
def test_signature_is_that_of_numpy(function):
    want, got = signature(function), signature(dispatch.ROWS[function])
    if want is None or got is None or isinstance(dispatch.ROWS[function], fnad.core.primitive.Primitive):
        return
    if want[0][1] is inspect.Parameter.VAR_POSITIONAL:
        want, got = want[1:], got[1:]
    assert got == want


ARGUMENTS = {
    np.clip: (X, 0.0, 1.0),
    np.dot: (X, X),
    np.outer: (X, X),
    np.trace: (SQUARE,),
    np.take: (X, [0]),
    np.compress: ([True, False, True], X),
    np.einsum: ("i,i->", X, X),
    np.concatenate: ([X, X],),
    np.stack: ([X, X],),
    np.linalg.multi_dot: ([SQUARE, SQUARE, SQUARE],),
    np.choose: ([0, 1, 0], [X, 2 * X]),
    **dict.fromkeys((np.quantile, np.percentile, np.nanquantile, np.nanpercentile), (X, 0.5)),
    **dict.fromkeys((np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2), (SQUARE,)),
}
WITH_OUT = [f for f in FUNCTIONS if "out" in dict(signature(f) or [])]


def trace_of(args):
    """The first array among the arguments, and the call with a tracer in its place."""
    leaves, spec = fnad.tree.flatten(args)
    place = next(i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray))
    return leaves[place], lambda t: fnad.tree.unflatten(spec, [*leaves[:place], t, *leaves[place + 1 :]])


@pytest.mark.parametrize("function", WITH_OUT, ids=dispatch.name_of)
def test_out_is_refused(function):
    args = ARGUMENTS.get(function, (X,))
    first, call = trace_of(args)
    out = np.asarray(function(*args)).copy()
    before = out.copy()
    for transform in (
        lambda f: fnad.vjp(f, first),
        lambda f: fnad.jvp(f, (first,), (first,)),
        lambda f: fnad.vmap(f)(np.stack([first, first])),
        lambda f: fnad.make_graph(f)(first),
    ):
        with pytest.raises(InPlaceError):
            transform(lambda t: (function(*call(t), out=out), t)[1])
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=dispatch.name_of)
def test_out_of_ufuncs_is_refused(ufunc):
    with pytest.raises(InPlaceError):
        fnad.vjp(lambda t: (ufunc(*[t] * ufunc.nin, out=(np.zeros(3),) * ufunc.nout), t)[1], X)
    with pytest.raises(InPlaceError):
        fnad.vjp(lambda t: (ufunc(*[X] * ufunc.nin, out=(t,) * ufunc.nout), t)[1], X)


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u.signature is None], ids=dispatch.name_of)
def test_mask_of_ufuncs_is_refused(ufunc):
    with pytest.raises(FnadError, match="where"):
        fnad.vjp(lambda t: (ufunc(*[t] * ufunc.nin, where=np.array([True, False, True])), t)[1], X)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if "out" in dict(signature(f) or [])], ids=dispatch.name_of)
def test_out_none_is_accepted(function):
    args = ARGUMENTS.get(function, (X,))
    first, call = trace_of(args)
    fnad.vjp(lambda t: (function(*call(t), out=None), t)[1], first)


@pytest.mark.parametrize("function", FUNCTIONS, ids=dispatch.name_of)
def test_unknown_keyword_is_an_error(function):
    with pytest.raises((TypeError, FnadError)):
        fnad.vjp(lambda t: (dispatch.ROWS[function](t, no_such_option=1), t)[1], X)
