"""A line search for the strong Wolfe conditions, by cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.typing import Array

SUFFICIENT, CURVATURE = 1e-4, 0.9
"""How much of the predicted decrease there must be, and how much of the slope may be left."""


@dataclass
class Point:
    """Loss and gradient at some length along the direction, and the slope there."""

    t: Any
    loss: Any
    gradient: Array
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two values and slopes is least, within bounds (which are the points themselves if not given)."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    near, far = (a, b) if a.t <= b.t else (b, a)
    d2 = np.sqrt(square)
    least = far.t - (far.t - near.t) * ((far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2))
    return min(max(least, low), high) if np.isfinite(least) else (low + high) / 2  # where numbers overflow, PyTorch goes on with nan


def strong_wolfe(
    along: Callable[[Any], tuple[Any, Array]], t: Any, d: Array, loss: Any, g: Array, slope: Any, tolerance: float, most: int
) -> tuple[Any, Array, Any, int]:
    """A step length where the loss has fallen enough and the slope is nearly gone.

    Args:
        along: Loss and gradient at a length.
        t: The length that is tried first.
        d: The direction.
        loss: The loss at length 0.
        g: The gradient there.
        slope: `g @ d`, negative.
        tolerance: Below which change of an entry the search ends.
        most: The most steps of the search.

    Returns:
        Loss, gradient and length, and how often `along` was called. The rules, their order and the constants are those of the search in
        `torch.optim.LBFGS` of PyTorch 2.13 (More & Thuente 1994, Nocedal & Wright 2006, algorithms 3.5 and 3.6).
    """
    search = _Search(along, d, Point(0, loss, g, slope))
    with np.errstate(all="ignore"):
        bracket, done = search.bracket(t, most)
        found = bracket[0] if len(bracket) == 1 else search.zoom(bracket, done, np.abs(d).max(), tolerance, most)
    return found.loss, found.gradient, found.t, search.calls


class _Search:
    def __init__(self, along: Callable[[Any], tuple[Any, Array]], d: Array, start: Point) -> None:
        self.along, self.d, self.start = along, d, start
        self.calls, self.steps = 0, 0

    def at(self, t: Any) -> Point:
        self.calls += 1
        loss, g = self.along(t)
        return Point(t, loss, g, g @ self.d)

    def falls(self, p: Point) -> bool:
        return not p.loss > self.start.loss + SUFFICIENT * p.t * self.start.slope

    def flat(self, p: Point) -> bool:
        return bool(abs(p.slope) <= -CURVATURE * self.start.slope)

    def bracket(self, t: Any, most: int) -> tuple[list[Point], bool]:
        """One point that fulfils the conditions, or two with one between them."""
        before, new = self.start, self.at(t)
        while self.steps < most:
            if not self.falls(new) or (self.steps > 1 and new.loss >= before.loss):
                return [before, new], False
            if self.flat(new):
                return [new], True
            if new.slope >= 0:
                return [before, new], False
            t = cubic_minimum(before, new, (new.t + 0.01 * (new.t - before.t), new.t * 10))
            before, new = new, self.at(t)
            self.steps += 1
        return [self.start, new], False

    def zoom(self, bracket: list[Point], done: bool, size: Any, tolerance: float, most: int) -> Point:
        """The best point, after the bracket has been made smaller until it fulfils the conditions."""
        low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        stuck = False
        while not done and self.steps < most and not abs(bracket[1].t - bracket[0].t) * size < tolerance:
            t, stuck = _inside(cubic_minimum(bracket[0], bracket[1]), bracket, stuck)
            new = self.at(t)
            self.steps += 1
            if not self.falls(new) or new.loss >= bracket[low].loss:
                bracket[high] = new
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            if self.flat(new):
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
        return bracket[low]


def _inside(t: Any, bracket: list[Point], stuck: bool) -> tuple[Any, bool]:
    """A length that is not too near to the ends twice in a row, and whether it is this time."""
    least, greatest = sorted(p.t for p in bracket)
    margin = 0.1 * (greatest - least)
    if not min(greatest - t, t - least) < margin:
        return t, False
    if stuck or t >= greatest or t <= least:
        return (greatest - margin if abs(t - greatest) < abs(t - least) else least + margin), False
    return t, True
