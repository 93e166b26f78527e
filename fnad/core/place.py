"""Where an operation comes from: the user's line, also while something else runs on its behalf."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from types import CodeType
from typing import NamedTuple

from fnad.errors import describe_line, user_frame


class Place(NamedTuple):
    """A line of the user's, and the forward operation there if what is asked about belongs to its backward pass."""

    code: CodeType
    line: int
    backward_of: str = ""

    def __str__(self) -> str:
        return describe_line(self.code.co_filename, self.line, self.code.co_name)


PLACE: ContextVar[Place | None] = ContextVar("place", default=None)
"""What operations are done for; None if they are the user's own."""


def here() -> Place | None:
    """The place of an operation that is being done now."""
    known = PLACE.get()
    if known is not None:
        return known
    frame = user_frame()
    return None if frame is None else Place(frame.f_code, frame.f_lineno)


@contextlib.contextmanager
def at(place: Place | None) -> Iterator[None]:
    """Do operations on behalf of a place."""
    token = PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(token)
