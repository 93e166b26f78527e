"""Mistakes that are easily made, and what the error says to write: the argument, the user's line, the way out."""

from __future__ import annotations

import dataclasses
import logging
import statistics
import sys

import numpy as np
import pytest
import scipy.optimize

import fnad
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, NonFiniteError, ShapeError, TracerConversionError

X = np.arange(3.0)
BOTH = pytest.mark.parametrize("transform", [fnad.grad, fnad.jit], ids=["grad", "jit"])


@dataclasses.dataclass
class Masked:
    w: object
    mask: object = dataclasses.field(default=None, metadata={"static": True})


def printed(x):
    print("value", float(x))
    return x


def flagged(x, flag):
    return x if flag else -x


CALLS = {
    "static array": (lambda: fnad.jit(lambda m: m.w)(Masked(X, X > 1)), DTypeError, r"field mask of Masked: ndarray[\s\S]*static"),
    "result": (lambda: fnad.jit(lambda x: (x, "ok"))(1.0), DTypeError, r"result: str: 'ok'[\s\S]*leave out"),
    "flag": (lambda: fnad.jit(flagged)(1.0, True), ConcretizationError, r"fix: an option or a size is named in static_argnames"),
    "option": (lambda: fnad.config(debug_nan=True), ArgumentError, r"config\(debug_nans=...\); options are: debug_nans, deterministic"),
    "no optimizer": (lambda: fnad.optim.partition({"f": None}, {"w": "f"}), ArgumentError, "set_to_zero"),
    "branches": (lambda: fnad.switch(0, np.sin, 1.0), ArgumentError, r"branches: sin[\s\S]*\[f, g\]"),
    "rate": (lambda: fnad.optim.adam(lr="0.1"), DTypeError, r"'0.1'[\s\S]*quotes"),
    "betas": (lambda: fnad.optim.adam(betas=0.9), ArgumentError, r"betas: 0.9[\s\S]*betas=\(0.9, 0.999\)"),
    "rows": (lambda: fnad.profile(np.sin)(X).sorted("speed"), ArgumentError, "bytes_per_second"),
}


@pytest.mark.parametrize(("call", "error", "says"), CALLS.values(), ids=CALLS)
def test_mistakes(call, error, says):
    with pytest.raises(error, match=says):
        call()


@BOTH
def test_printing_a_float(transform):
    with pytest.raises(TracerConversionError, match=r"printed: print[\s\S]*fix: fnad\.debug\.print"):
        transform(printed)(1.0)


@BOTH
def test_a_list_as_an_argument(transform):
    with pytest.raises(TracerConversionError, match=r"np\.stack\(v\) instead of v.*np\.array\(v\)"):
        transform(lambda v: np.sum(np.sin(v)))([1.0, 2.0])


@BOTH
def test_lines_are_the_users_where_libraries_stand_between(transform, monkeypatch):
    """Python's library and SciPy call what is handed to them."""
    found = []
    monkeypatch.setattr(logging.Handler, "handleError", lambda self, record: found.append(str(sys.exc_info()[1])))
    logger = logging.Logger("test")
    logger.addHandler(logging.StreamHandler())
    transform(lambda x: logger.warning("x = %f", x) or x)(1.0)
    assert "test_messages.py" in found[0]

    with pytest.raises(TracerConversionError, match=r"at: .*test_messages\.py"):
        transform(lambda x: statistics.fmean([x, x]))(1.0)


def test_lines_are_the_users_where_scipy_stands_between():
    with pytest.raises(ConcretizationError, match=r"at: .*test_messages\.py"):
        fnad.jit(lambda a: scipy.optimize.newton(lambda z: z * z - a, 1.0))(2.0)


@pytest.mark.parametrize(
    ("f", "at", "says"),
    [
        (lambda x: 1.0 / x, 0.0, r"np\.where\(b == 0, 1, b\)"),
        (np.sqrt, 0.0, r"np\.sqrt\(np\.where"),
        (np.log, -1.0, r"np\.log\(np\.where"),
        (np.exp, 800.0, r"np\.exp\(np\.minimum"),
    ],
)
def test_what_is_not_finite_is_told_how_to_be(f, at, says):
    with fnad.config(debug_nans=True), pytest.raises(NonFiniteError, match=says), np.errstate(all="ignore"):
        fnad.grad(f)(at)


def test_rows_of_a_profile_are_sorted():
    measured = fnad.profile(lambda x: np.sum(np.sort(np.sin(x)) @ np.ones((3, 3))))(X)
    assert len(measured.rows) > 1
    times = [r.time for r in measured.sorted().rows]
    assert times == sorted(times, reverse=True)
    kinds = [r.kind for r in measured.sorted("kind").rows]
    assert kinds == sorted(kinds)
    assert {r.name for r in measured.sorted("bytes").rows} == {r.name for r in measured.rows}


@pytest.mark.parametrize(
    "f",
    [lambda x: x + np.ones(4), lambda x: x @ np.ones((2, 2)), lambda x: np.where(x > 0, x, np.ones(4)), lambda x: np.fmax(x, np.ones(2))],
)
def test_shapes_that_do_not_fit_are_told_with_the_line(f):
    with pytest.raises(ShapeError, match=r"got at: .*test_messages\.py"):
        fnad.jit(f)(X)
