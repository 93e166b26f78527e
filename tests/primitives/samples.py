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


@samples("guarded_multiply")
def _(rng):
    zeros = np.array([0.0, 2.0, 0.0, 0.0]), np.array([np.inf, 1.0, np.nan, -3.0])
    return [
        Sample((real(rng, 2, 3), real(rng, 2, 3))),
        Sample((real(rng, 2, 3), real(rng, 3))),
        Sample((real(rng), real(rng, 3))),
        Sample((real(rng), real(rng))),
        Sample((cplx(rng, 3), cplx(rng, 3))),
        Sample((real(rng, 0), real(rng, 1))),
        Sample(zeros, smooth=False),
    ]


@samples("matmul")
def _(rng):
    return [
        Sample((real(rng, 2, 3), real(rng, 3, 2))),
        Sample((real(rng, 2, 1, 3), real(rng, 2, 3, 1))),
        Sample((real(rng, 2, 1, 1, 2), real(rng, 2, 2, 3))),
        Sample((cplx(rng, 2, 2), cplx(rng, 2, 1))),
        Sample((cplx(rng, 2, 2), real(rng, 2, 2))),
        Sample((real(rng, 1, 1), real(rng, 1, 1))),
        Sample((real(rng, 2, 0), real(rng, 0, 3))),
        Sample((real(rng, 0, 2), real(rng, 2, 3))),
    ]


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
