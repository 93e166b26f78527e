"""Where random numbers come from while a module runs as a pure function: from its key, not from a generator's hidden state."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from fnad import random
from fnad.core.tracer import Tracer, ValueTracer
from fnad.errors import ArgumentError, user_line


class Keyed:
    """Draws from a key, under the names of `numpy.random.Generator`; each takes the next key of a sequence.

    Args:
        key: A key of `fnad.random`; it may be traced.
    """

    def __init__(self, key: Any) -> None:
        self.key, self.count = key, 0

    def next(self) -> Any:
        """The next key."""
        self.count += 1
        return random.fold_in(self.key, self.count)

    def random(self, shape: Any, dtype: Any = float) -> Any:
        return random.uniform(self.next(), shape, dtype)

    def standard_normal(self, shape: Any, dtype: Any = float) -> Any:
        return random.normal(self.next(), shape, dtype)

    def integers(self, low: Any, high: Any, shape: Any) -> Any:
        return random.randint(self.next(), shape, low, high)

    def permutation(self, n: int) -> Any:
        return random.permutation(self.next(), n)

    def exponential(self, scale: Any, shape: Any) -> Any:
        return random.exponential(self.next(), shape) * scale

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"fnad.torch: no draws of numpy's {name!r} from a key; draw them outside, and give them as an argument")


class NoKey(Keyed):
    """Stands where a compiled function has no key: numbers would be drawn once, when it is recorded."""

    def __init__(self) -> None:
        super().__init__(None)

    def next(self) -> Any:
        raise ArgumentError(
            "random numbers in a compiled function come from a key: without one they would be drawn once, and be constants",
            got={"at": user_line()},
            fix="apply(params, x, key=key), with a new key for each call (fnad.random.split or fold_in), or module.eval()",
        )


class _Current(threading.local):
    stream: Keyed | None = None


CURRENT = _Current()


@contextlib.contextmanager
def drawing_from(key: Any, compiled: bool) -> Iterator[None]:
    """Inside, draws come from `key`; without one, as usual, but not where `compiled` says that they would be drawn once."""
    before = CURRENT.stream
    CURRENT.stream = before if key is None and not compiled else NoKey() if key is None else Keyed(key)
    try:
        yield
    finally:
        CURRENT.stream = before


def unknown(x: Any) -> bool:
    """Whether a traced value is not known yet: it is recorded, or one of many examples."""
    while isinstance(x, ValueTracer):
        x = x.value
    return isinstance(x, Tracer)


def plain(x: Any) -> Any:
    """An array; traced values stay."""
    return x if isinstance(x, Tracer) else np.asarray(x)
