"""Every exception and warning of fnad, one class per kind of mistake.

A message has three parts: the rule that was broken, what was found, and what to write instead.
`docs/errors.md` is the handbook: one section per class.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from types import FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep


def _message(rule: str, got: dict[str, Any], fix: str, line: str) -> str:
    lines = [rule, *(line.format(name, value) for name, value in got.items())]
    return "\n".join([*lines, f"  fix: {fix}"] if fix else lines)


class FnadError(Exception):
    """Base of every error raised by fnad itself; catch it to catch them all.

    Args:
        rule: What must hold, in one sentence.
        got: What was found instead: name -> value, printed one per line.
        fix: What to write instead.
    """

    _line = "  got {}: {}"

    def __init__(self, rule: str, *, got: dict[str, Any] | None = None, fix: str = "") -> None:
        super().__init__(_message(rule, got or {}, fix, self._line))
        self.rule, self.got, self.fix = rule, got or {}, fix

    def located(self) -> FnadError:
        """The same with the user's line, if it lacks one."""
        return self if "at" in self.got else type(self)(self.rule, got={**self.got, "at": user_line()}, fix=self.fix)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.rule, {k: str(v) for k, v in self.got.items()}, self.fix)


def _rebuild(cls: type[FnadError], rule: str, got: dict[str, Any], fix: str) -> FnadError:
    return cls(rule, got=got, fix=fix)


class ShapeError(FnadError, ValueError):
    """Shapes, axes or sizes do not fit."""


class DTypeError(FnadError, TypeError):
    """A value has a dtype (or is of a type) that cannot be used here."""


class TreeError(FnadError, ValueError):
    """Two pytrees that must have the same structure differ."""


class ArgumentError(FnadError, ValueError):
    """An option or argument has a value outside what is allowed."""


class BoundsError(FnadError, IndexError):
    """An index or a class label lies outside its axis."""


class TracerConversionError(FnadError, TypeError):
    """A traced value would be turned into a plain one, which would drop its derivative."""


class InPlaceError(FnadError, TypeError):
    """A traced value, or a plain array that receives one, would be changed in place."""


class ConcretizationError(FnadError, TypeError):
    """The value of a recorded or batched tracer is needed, but only its shape and dtype are known."""


class LeakedTracerError(FnadError, RuntimeError):
    """A traced value is used after the transform that made it has ended."""


class ClosureError(FnadError, TypeError):
    """A function under custom_vjp, custom_jvp or checkpoint closes over a traced value."""


class UnsupportedError(FnadError, NotImplementedError, TypeError):
    """A function, method or option that fnad cannot trace."""


class MissingRuleError(FnadError, NotImplementedError):
    """A primitive lacks the rule that a transform asks for."""


class NonFiniteError(FnadError, FloatingPointError):
    """An operation made a nan or an inf, under `fnad.config(debug_nans=True)`."""

    def inside(self, what: str) -> NonFiniteError:
        """The same error in a step of a loop."""
        return NonFiniteError(self.rule, got={**self.got, "in": f"{what}, {self.got['in']}" if "in" in self.got else what}, fix=self.fix)


class GradientError(FnadError, AssertionError):
    """A check of `fnad.testing` found that two results which must agree do not."""

    _line = "  {}: {}"


class UnknownNameError(FnadError, AttributeError):
    """A name of another library that fnad, or a traced value, does not have."""


class RecordingWarning(UserWarning):
    """A function did something while it was recorded that calls of the compiled function will not repeat."""


def warn(category: type[Warning], rule: str, *, got: dict[str, Any] | None = None, fix: str = "") -> None:
    """Warn at the user's line, with a message of the same parts as an error's."""
    message = _message(rule, got or {}, fix, FnadError._line)
    frame = user_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        names = frame.f_globals
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), registry)


def user_frame() -> FrameType | None:
    """The innermost frame on the stack that is neither fnad's nor NumPy's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def is_users(frame: FrameType) -> bool:
    """Whether a frame is neither fnad's nor NumPy's."""
    path = frame.f_code.co_filename
    return not path.startswith((_PACKAGE, f"numpy{os.sep}", "<__array_function__")) and f"{os.sep}numpy{os.sep}" not in path


def is_packages(path: str) -> bool:
    """Whether a source file belongs to fnad, to an installed package or to Python itself."""
    return path.startswith((_PACKAGE, _STANDARD, "<frozen")) or "site-packages" in path or "dist-packages" in path


def _is_between(path: str) -> bool:
    """Whether a source file belongs to a library that calls what users hand to it."""
    standard = path.startswith((_STANDARD, "<frozen")) and "site-packages" not in path
    return standard or f"{os.sep}scipy{os.sep}" in path


def calling_library() -> str:
    """The top-level package of the innermost frame that is neither fnad's nor NumPy's."""
    frame = user_frame()
    return "" if frame is None else str(frame.f_globals.get("__name__", "")).split(".")[0]


def user_line() -> str:
    """`file:line in function: source` of the innermost frame that is the user's, also where it went through Python's library or SciPy."""
    first = frame = user_frame()
    while frame is not None and (not is_users(frame) or _is_between(frame.f_code.co_filename)):
        frame = frame.f_back
    frame = frame or first
    return "unknown" if frame is None else describe_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def describe_line(path: str, line: int, function: str) -> str:
    source = linecache.getline(path, line).strip()
    return f"{path}:{line} in {function}" + (f": {source}" if source else "")


def describe_function(f: Any) -> str:
    """Name and place of definition of a user's function, for messages."""
    name, _, place = describe_place(f).partition(" at ")
    return f"{name} ({place})" if place else name


def describe_place(f: Any) -> str:
    """`name at file:line` of a function, or what is known of it."""
    code = getattr(f, "__code__", None) or getattr(getattr(f, "__wrapped__", None), "__code__", None)
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else str(name)
