"""Samples for the audit of primitives that no family can draw samples for: name -> function of a generator that returns them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {}


@dataclass
class Sample:
    """Arguments for `fnad.testing.check_primitive`; see there."""

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    through: Callable[..., Any] | None = None
    order: int = 2
    fixed: tuple[int, ...] = ()

    def __str__(self) -> str:
        shapes = [f"{np.asarray(a).dtype}{list(np.shape(a))}" for a in self.args]
        params = [f"{k}={v}" for k, v in self.params.items()]
        return " ".join([*shapes, *params, *([] if self.smooth else ["special"])])


def samples(name: str) -> Callable[[Callable[[np.random.Generator], list[Sample]]], Callable[..., Any]]:
    def register(draw: Callable[[np.random.Generator], list[Sample]]) -> Callable[..., Any]:
        assert name not in SAMPLES
        SAMPLES[name] = draw
        return draw

    return register


def real(rng: np.random.Generator, *shape: int) -> Any:
    return rng.uniform(-2.0, 2.0, shape) if shape else np.float64(rng.uniform(-2.0, 2.0))


def cplx(rng: np.random.Generator, *shape: int) -> Any:
    return rng.uniform(-2.0, 2.0, shape) + 1j * rng.uniform(-2.0, 2.0, shape)


def guarded(rng):
    zeros = np.array([0.0, 2.0, 0.0, 0.0]), np.array([np.inf, 1.0, np.nan, -3.0])
    return [
        Sample((real(rng, 2, 3), real(rng, 2, 3))),
        Sample((real(rng, 2, 3), real(rng, 3))),
        Sample((real(rng), real(rng, 3))),
        Sample((real(rng), real(rng))),
        Sample((cplx(rng, 3), cplx(rng, 3))),
        Sample((real(rng, 0), real(rng, 1))),
        Sample(zeros, smooth=False),
        Sample((np.array(0.0), np.array(np.inf)), smooth=False),
    ]


samples("guarded_multiply")(guarded)
samples("guarded_multiply_both")(guarded)


def products(rng):
    return [
        Sample((real(rng, 2, 3), real(rng, 3, 2))),
        Sample((real(rng, 2, 1, 3), real(rng, 2, 3, 1))),
        Sample((real(rng, 2, 1, 1, 2), real(rng, 2, 2, 3))),
        Sample((cplx(rng, 2, 2), cplx(rng, 2, 1))),
        Sample((cplx(rng, 2, 2), real(rng, 2, 2))),
        Sample((real(rng, 1, 1), real(rng, 1, 1))),
        Sample((real(rng, 2, 0), real(rng, 0, 3))),
        Sample((real(rng, 0, 2), real(rng, 2, 3))),
        Sample((real(rng, 3), real(rng, 3))),
        Sample((real(rng, 2, 3), real(rng, 3))),
        Sample((real(rng, 2), real(rng, 2, 3))),
        Sample((cplx(rng, 2), real(rng, 2, 1))),
        Sample((real(rng, 0), real(rng, 0))),
    ]


samples("matmul")(products)


@samples("guarded_matmul")
def guarded_matmul(rng):
    zeros = np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 1.0]]), np.array([[np.inf, 1.0, np.nan], [2.0, 3.0, 1.0]])
    return [*products(rng), Sample(zeros, smooth=False), Sample((zeros[0][1], zeros[1]), smooth=False)]


samples("guarded_matmul_both")(guarded_matmul)


@samples("guarded_matmul_left")
def _(rng):
    return [*products(rng), *(Sample(tuple(a.T for a in s.args[::-1]), smooth=False) for s in guarded_matmul(rng)[-2:])]


@samples("sum")
def _(rng):
    return [
        *(Sample((real(rng, 2, 3, 2),), {"axis": axis}) for axis in ((0,), (1,), (0, 2), (0, 1, 2), ())),
        Sample((real(rng),), {"axis": ()}),
        Sample((cplx(rng, 3),), {"axis": (0,)}),
        Sample((real(rng, 0, 2),), {"axis": (0,)}),
        Sample((real(rng, 0, 2),), {"axis": (1,)}),
        Sample((real(rng, 1),), {"axis": (0,)}),
        Sample((np.arange(6).reshape(2, 3),), {"axis": (1,)}),
        Sample((np.array([True, False]),), {"axis": (0,)}),
    ]


def reduction(rng, **options):
    """Distinct entries along some axes of arrays of several shapes."""
    return [
        *(Sample((real(rng, 2, 3, 2),), {"axis": axis}, **options) for axis in ((0,), (1,), (0, 2), (0, 1, 2), ())),
        Sample((real(rng),), {"axis": ()}, **options),
        Sample((real(rng, 1),), {"axis": (0,)}, **options),
        Sample((real(rng, 0, 2),), {"axis": (1,)}, **options),
    ]


EMPTY = np.zeros((0, 2))
ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 1.5, 0.0], [1.0, 2.0, -1.0]])
TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.5], [-1.0, -5.0, -1.0]])  # in pairs: among three, differences do not share evenly


@samples("prod")
def _(rng):
    return [
        *reduction(rng),
        Sample((ZEROS,), {"axis": (1,)}),
        Sample((ZEROS,), {"axis": (0, 1)}),
        Sample((cplx(rng, 2, 2),), {"axis": (0,)}),
        Sample((EMPTY,), {"axis": (0,)}),
        Sample((np.arange(1, 5),), {"axis": (0,)}),
    ]


def extremes(rng):
    return [
        *reduction(rng),
        *(Sample((TIES,), {"axis": axis}, smooth=False) for axis in ((0,), (1,), (0, 1))),
        Sample((np.array([np.inf, 1.0, -np.inf]),), {"axis": (0,)}, smooth=False),
        Sample((np.array([3, 1, 3]),), {"axis": (0,)}),
    ]


for _name in ("max", "min", "nanmax", "nanmin"):
    samples(_name)(extremes)


@samples("logsumexp")
def _(rng):
    large = np.array([[1000.0, 999.0], [-1000.0, -1001.0], [3.0, -np.inf]])
    return [
        *reduction(rng),
        Sample((large,), {"axis": (1,)}, smooth=False),
        Sample((np.full(2, -np.inf),), {"axis": (0,)}, smooth=False),
        Sample((EMPTY,), {"axis": (0,)}, smooth=False),
    ]


def softmaxes(rng):
    return [
        *(Sample((real(rng, 2, 3, 2),), {"axis": axis}) for axis in ((0,), (1,), (0, 2), (0, 1, 2), ())),
        Sample((real(rng),), {"axis": ()}),
        Sample((real(rng, 1),), {"axis": (0,)}),
        Sample((EMPTY,), {"axis": (1,)}),
        Sample((EMPTY,), {"axis": (0,)}),
        Sample((np.array([[1000.0, 999.0], [-1000.0, -1001.0]]),), {"axis": (1,)}, smooth=False),
    ]


samples("softmax")(softmaxes)
samples("log_softmax")(softmaxes)


def verdicts(rng):
    return [
        *reduction(rng),
        Sample((np.array([[True, False], [True, True]]),), {"axis": (1,)}),
        Sample((np.array([[False, False], [True, False]]),), {"axis": (1,)}),
        Sample((np.array([0, 1, 2]),), {"axis": (0,)}),
        Sample((np.array([0.0, np.nan]),), {"axis": (0,)}, smooth=False),
        Sample((EMPTY,), {"axis": (0,)}),
    ]


samples("any")(verdicts)
samples("all")(verdicts)


def positions(rng):
    return [
        *(Sample((real(rng, 2, 3, 2),), {"axis": axis}) for axis in (0, 1, 2)),
        Sample((real(rng, 1),), {"axis": 0}),
        Sample((real(rng, 0, 2),), {"axis": 1}),
        Sample((np.array([3, 1, 3]),), {"axis": 0}),
        Sample((np.array([1.0, np.nan, 3.0, np.nan]),), {"axis": 0}, smooth=False),
        Sample((TIES,), {"axis": 1}, smooth=False),
    ]


samples("argmax")(positions)
samples("argmin")(positions)


def scans(rng):
    both = [{"axis": axis, "reverse": reverse} for axis in (0, 1) for reverse in (False, True)]
    return [
        *(Sample((real(rng, 3, 4),), params) for params in both),
        Sample((real(rng, 1),), {"axis": 0, "reverse": False}),
        Sample((real(rng, 0),), {"axis": 0, "reverse": False}),
        Sample((real(rng, 5, 0),), {"axis": 0, "reverse": True}),
        Sample((real(rng, 9),), {"axis": 0, "reverse": False}),
        Sample((ZEROS,), {"axis": 1, "reverse": False}),
        Sample((ZEROS,), {"axis": 1, "reverse": True}),
        Sample((cplx(rng, 3),), {"axis": 0, "reverse": False}),
        Sample((np.arange(1, 5),), {"axis": 0, "reverse": False}),
    ]


samples("cumsum")(scans)
samples("cumprod")(scans)


def running(rng):
    steps = np.array([[1.0, 3.0, 2.0, 3.0, 5.0], [2.0, 2.0, 1.0, 0.0, 3.0], [0.0, np.nan, 4.0, np.nan, 1.0]])
    return [
        *(s for s in scans(rng) if np.asarray(s.args[0]).dtype.kind != "c" and s.args[0] is not ZEROS),
        Sample((np.linspace(-1.0, 1.0, 5) ** 3,), {"axis": 0, "reverse": False}),
        Sample((steps[0, [0, 1, 2, 4]],), {"axis": 0, "reverse": False}),
        Sample((steps,), {"axis": 1, "reverse": False}, smooth=False),
    ]


samples("cummax")(running)
samples("cummin")(running)


@samples("where")
def _(rng):
    some = np.array([True, False, True])
    return [
        Sample((some, real(rng, 3), real(rng, 3))),
        Sample((some[:2, None], real(rng, 3), real(rng))),
        Sample((some, real(rng), real(rng))),
        Sample((np.array(True), real(rng), real(rng))),
        Sample((np.array(False), real(rng, 2), real(rng, 2, 1))),
        Sample((some, cplx(rng, 3), real(rng, 3))),
        Sample((some, np.arange(3), real(rng, 3))),
        Sample((some[:0], real(rng, 0), real(rng, 1))),
        Sample((some[:1], real(rng, 1), real(rng, 1))),
        Sample((some, np.array([1.0, np.nan, np.inf]), np.array([np.inf, 2.0, np.nan])), smooth=False),
    ]


def of_complex(rng):
    return [Sample((cplx(rng, 2, 3),)), Sample((cplx(rng, 1),)), Sample((cplx(rng, 0),)), Sample((np.array(1.0 + 2.0j),))]


for _name in ("real", "imag", "conjugate"):
    samples(_name)(of_complex)


@samples("round")
def _(rng):
    return [
        *(Sample((real(rng, 2, 3),), {"decimals": decimals}) for decimals in (-1, 0, 2)),
        Sample((real(rng),), {"decimals": 1}),
        Sample((real(rng, 0),), {"decimals": 0}),
        Sample((np.arange(3),), {"decimals": 0}),
        Sample((np.array([0.5, 1.5, -0.5]),), {"decimals": 0}, smooth=False),
    ]


@samples("polygamma")
def _(rng):
    n = np.array([1.0, 0.0, 2.0])
    return [
        Sample((n, rng.uniform(0.5, 4.0, 3)), fixed=(0,)),
        Sample((n[:2, None], rng.uniform(0.5, 4.0, 3)), fixed=(0,)),
        Sample((np.array(1), rng.uniform(0.5, 4.0, 2))),
        Sample((1, rng.uniform(0.5, 4.0, 2))),
        Sample((n[:0], rng.uniform(0.5, 4.0, 1)), fixed=(0,)),
    ]


LABELS = np.array([2, 0])


@samples("softmax_cross_entropy")
def _(rng):
    return [
        Sample((real(rng, 2, 3), LABELS)),
        Sample((real(rng, 2, 3), LABELS.astype(np.int32))),
        Sample((real(rng, 1, 1), LABELS[1:])),
        Sample((real(rng, 0, 3), LABELS[:0])),
        Sample((np.array([[1000.0, 0.0, -1000.0], [3.0, 3.0, 3.0]]), LABELS), smooth=False),
    ]


@samples("softmax_cross_entropy_pullback")
def _(rng):
    return [
        Sample((real(rng, 2), real(rng, 2, 3), LABELS)),
        Sample((np.zeros(2), real(rng, 2, 3), LABELS)),
        Sample((real(rng, 1), real(rng, 1, 1), LABELS[1:])),
        Sample((real(rng, 0), real(rng, 0, 3), LABELS[:0])),
        Sample((real(rng, 2), np.array([[1000.0, 0.0, -1000.0], [3.0, 3.0, 3.0]]), LABELS), smooth=False),
    ]


@samples("reshape")
def _(rng):
    return [
        Sample((real(rng, 2, 3),), {"shape": (3, 2)}),
        Sample((real(rng, 6),), {"shape": (1, 2, 3)}),
        Sample((real(rng, 1),), {"shape": ()}),
        Sample((real(rng),), {"shape": (1, 1)}),
        Sample((real(rng),), {"shape": ()}),
        Sample((real(rng, 0, 2),), {"shape": (3, 0)}),
        Sample((cplx(rng, 2, 2),), {"shape": (4,)}),
    ]


@samples("transpose")
def _(rng):
    return [
        Sample((real(rng, 2, 3),), {"axes": (1, 0)}),
        Sample((real(rng, 2, 3, 1),), {"axes": (2, 0, 1)}),
        Sample((cplx(rng, 2, 2),), {"axes": (1, 0)}),
        Sample((real(rng, 0, 2),), {"axes": (1, 0)}),
        Sample((real(rng),), {"axes": ()}),
    ]


@samples("broadcast_to")
def _(rng):
    return [
        Sample((real(rng, 3),), {"shape": (2, 3)}),
        Sample((real(rng, 2, 1),), {"shape": (3, 2, 3)}),
        Sample((real(rng),), {"shape": (2,)}),
        Sample((real(rng),), {"shape": ()}),
        Sample((real(rng, 1),), {"shape": (0,)}),
        Sample((cplx(rng, 1),), {"shape": (2,)}),
    ]


@samples("stop_gradient")
def _(rng):
    return [Sample((np.arange(3),)), Sample((np.array(True),))]  # its derivative is zero on purpose: see test_constant_has_no_derivative


@samples("again")
def _(rng):
    return [Sample((real(rng, 2, 3), real(rng, 4))), Sample((real(rng), real(rng)))]


@samples("cast")
def _(rng):
    return [
        Sample((real(rng, 2, 3),), {"dtype": np.dtype(np.float64)}),
        Sample((real(rng),), {"dtype": np.dtype(np.float64)}),
        Sample((real(rng, 3),), {"dtype": np.dtype(np.float32)}),
        Sample((real(rng),), {"dtype": np.dtype(np.float32)}),
        Sample((real(rng, 3),), {"dtype": np.dtype(np.complex128)}),
        Sample((cplx(rng, 3),), {"dtype": np.dtype(np.complex128)}),
        Sample((cplx(rng, 3),), {"dtype": np.dtype(np.float64)}),
        Sample((real(rng, 3),), {"dtype": np.dtype(np.int64)}, smooth=False),
        Sample((real(rng, 3),), {"dtype": np.dtype(bool)}),
        Sample((np.arange(3),), {"dtype": np.dtype(np.float32)}),
        Sample((real(rng, 0),), {"dtype": np.dtype(np.float32)}),
    ]
