"""Whether operations are recorded for `backward()`, per thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any


class _State(threading.local):
    recording = True
    inference = False
    known: frozenset[int] | None = None
    """While a call is recorded by `torch.compile`, the leaves whose gradients it sees, by identity."""


STATE = _State()


class _Mode:
    """A context manager that is a decorator as well, and may be entered any number of times."""

    recording = True
    inference: bool | None = None

    def __init__(self, mode: bool = True) -> None:
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((STATE.recording, STATE.inference))
        STATE.recording = self.recording
        if self.inference is not None:
            STATE.inference = self.inference

    def __exit__(self, *_: Any) -> None:
        STATE.recording, STATE.inference = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        make = self._again

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with make():
                return function(*args, **kwargs)

        return wrapped

    def _again(self) -> _Mode:
        return type(self)()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and callable(args[0]):  # a decorator without parentheses
            return cls()(args[0])
        return super().__new__(cls)


class no_grad(_Mode):
    """Nothing is recorded inside: `with torch.no_grad():`, or `@torch.no_grad()` on a function.

    Example:
        >>> import fnad.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> with torch.no_grad():
        ...     y = 2 * x
        >>> y.requires_grad
        False
    """

    recording = False


class enable_grad(_Mode):
    """Operations are recorded inside, also where `no_grad` surrounds it."""

    recording = True


class inference_mode(_Mode):
    """As `no_grad`; `inference_mode(False)` changes nothing."""

    recording = False
    inference = True

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode
        if not mode:
            self.recording, self.inference = STATE.recording, STATE.inference

    def _again(self) -> _Mode:
        return type(self)(self._mode)


class set_grad_enabled(_Mode):
    """Recording on or off, at once; as a context manager, until it ends."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._outer = STATE.recording, STATE.inference
        self.recording = STATE.recording = bool(mode)

    def __enter__(self) -> None:
        self._before.append(self._outer)
        STATE.recording = self.recording

    def _again(self) -> _Mode:
        STATE.recording = self._outer[0]
        return type(self)(self.recording)


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are recorded."""
    return STATE.recording


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return STATE.inference
