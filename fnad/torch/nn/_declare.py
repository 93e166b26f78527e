"""Modules that are one function of `torch.nn.functional` with options, declared in a line each."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn.module import Module

REQUIRED: Any = object()
"""Stands for the default of an option that must be given."""


class Applied(Module):
    """A function of `torch.nn.functional` by its name, with the options that its class declares."""

    _function = ""
    _options: dict[str, Any] = {}  # noqa: RUF012
    _shown: str | None = None
    """How options are printed, as `str.format` takes it; all of them, if None."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        for name, value in options_of(type(self).__name__, self._options, args, kwargs).items():
            setattr(self, name, self.as_kept(name, value))

    def as_kept(self, name: str, value: Any) -> Any:
        """What becomes of an option that was given."""
        return value

    def forward(self, *inputs: Any) -> Any:
        return getattr(F, self._function)(*inputs, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        shown = self._shown
        if shown is None:
            shown = ", ".join(f"{name}={{{name}!r}}" for name in self._options if name != "inplace")
        parts = [shown.format(**{name: getattr(self, name) for name in self._options})]
        return ", ".join(p for p in [*parts, "inplace=True" if getattr(self, "inplace", False) else ""] if p)


def options_of(name: str, declared: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All options of a module: those given in their order or by name, and the defaults of the others."""
    unknown = set(kwargs) - set(declared) - {"device", "dtype"}
    given = {**declared, **dict(zip(declared, args, strict=False)), **{k: v for k, v in kwargs.items() if k in declared}}
    missing = [k for k, v in given.items() if v is REQUIRED]
    if len(args) > len(declared) or unknown or missing:
        raise TypeError(f"{name} takes {', '.join(declared) or 'no options'}; got {args}, {kwargs}")
    return given


def applied(name: str, function: str, module: str, shown: str | None = None, base: Any = Applied, **options: Any) -> Any:
    """The class of a function of `torch.nn.functional`, with its options in PyTorch's order."""
    doc = f"`torch.nn.functional.{function}` as a module. Reference: `torch.nn.{name}`."
    return type(name, (base,), {"_function": function, "_options": options, "_shown": shown, "__doc__": doc, "__module__": module})
