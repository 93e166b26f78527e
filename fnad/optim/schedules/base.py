"""What a schedule is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.errors import ArgumentError


@dataclass(frozen=True)
class Schedule:
    """A function of the step, with its options to be read: `schedule(step)` is `formula(step, **options)`."""

    formula: Callable[..., Any]
    options: Mapping[str, Any]

    def __call__(self, step: Any) -> Any:
        return self.formula(step, **self.options)


def schedule(formula: Callable[..., Any], **options: Any) -> Schedule:
    return Schedule(formula, options)


def check_positive(**given: Any) -> None:
    """Lengths in steps are positive integers."""
    for name, n in given.items():
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ArgumentError(f"Expected positive integer {name}, but got {n}")


def anneal(strategy: str, share: Any) -> Any:
    """From 0 to 1 as the share does: on a straight line, or along half a cosine."""
    return share if strategy == "linear" else (1 - np.cos(np.pi * share)) / 2


def check_strategy(strategy: str, allowed: tuple[str, ...] = ("cos", "linear")) -> None:
    if strategy not in allowed:
        raise ArgumentError(f"anneal_strategy must be one of {' or '.join(map(repr, allowed))}, instead got {strategy}")
