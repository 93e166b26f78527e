"""Views: tensors on the memory of another one, whose changes in place reach each other.

An operation changed in place through one of them gives the base a new history; the others take theirs anew from the base.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class View:
    """What a tensor is a view of, and how it is made of it.

    Args:
        base: The tensor on the whole memory.
        take: `take(base)` is the view, recorded.
        put: `put(base, view)` is the base with the view's entries replaced, recorded; None for views that
            cannot be written to.
        recorded: Whether operations were recorded when the view was made.
    """

    __slots__ = ("at", "base", "put", "recorded", "take")

    def __init__(self, base: Any, take: Callable[[Any], Any], put: Callable[[Any, Any], Any] | None, recorded: bool) -> None:
        self.base, self.take, self.put, self.recorded = base, take, put, recorded
        self.at = base._node


def refresh(x: Any) -> None:
    """Take the history of a view from its base, if that has been changed in place since."""
    view = x._view
    base = view.base
    if base._view is not None:
        refresh(base)
    if view.at is not base._node and view.recorded:
        again = view.take(base)
        x._node, x._k, x._req = again._node, again._k, again._req
        view.at = base._node


def carry(x: Any) -> None:
    """Give the base of a view that was changed in place its new history."""
    view = x._view
    if not view.recorded:
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Make the view inside of enable_grad, "
            "or change it inside of no_grad."
        )
    base = view.base
    if base._view is not None:
        refresh(base)
    assert view.put is not None
    new = view.put(base, x)
    base._node, base._k, base._req = new._node, new._k, new._req
    if base._view is not None:
        carry(base)
    view.at = base._node
