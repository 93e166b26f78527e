"""What a function of tensors reaches besides its arguments: modules, optimizers, tensors, and Python values that it may branch on.

Tensors found here are arguments and results of the compiled function. Everything else is part of it: when one of the containers that
hold it has changed, the function is looked at anew.
"""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import operator
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fnad.core.watch import is_users_class
from fnad.errors import is_packages
from fnad.torch._tensor import Tensor
from fnad.torch.nn.module import Module
from fnad.torch.optim.optimizer import FromPure, Optimizer

_MANY = 100_000
_NUMBERS = (bool, int, float, complex, str, bytes)
_PLAIN = (*_NUMBERS, type(None), np.ndarray, np.generic, types.ModuleType, type)


class Container:
    """The values that a dict, a list or a variable holds, and how to see whether they are still the same.

    Args:
        name: What it is called.
        read: Its values now.
        labels: What these are called.
        holder: The dict or list itself, if it is one.
    """

    __slots__ = ("before", "copy", "holder", "labels", "name", "read")

    def __init__(self, name: str, read: Callable[[], Any], labels: list[str], holder: Any = None) -> None:
        self.name, self.read, self.labels, self.holder = name, read, labels, holder
        self.before = list(read())
        self.copy: Any = None if holder is None else copy.copy(holder)

    def same(self) -> bool:
        now = self.read()
        return len(now) == len(self.before) and all(map(operator.is_, now, self.before))

    def changed(self) -> tuple[str, bool]:
        """What of it is another object, and no equal number or string (empty if there is nothing); whether it was missing before."""
        now = list(self.read())
        for k, (a, b) in enumerate(zip(now, self.before, strict=False)):
            if a is not b and not (a.__class__ is b.__class__ and isinstance(a, _NUMBERS) and a == b):
                return (self.labels[k] if k < len(self.labels) else self.name) or "a variable", b is None
        return ("", False) if len(now) == len(self.before) else (self.name or "a variable", len(now) > len(self.before))

    def restore(self) -> None:
        """Put back what a dict or list held."""
        if self.holder is not None and not self.same():
            self.holder.clear()
            (self.holder.update if isinstance(self.holder, dict) else self.holder.extend)(self.copy)


class Wrapper:
    """A callable that has no state of its own beside its function's."""

    function: Any


class State:
    """Everything found from a function and its arguments.

    Args:
        function: The function.
        args: The leaves of what it is called with; tensors among these are not part of the state.
    """

    def __init__(self, function: Any, args: Any = ()) -> None:
        self.tensors: list[Any] = []
        self.optimizers: list[Any] = []
        self.containers: list[Container] = []
        self._held: list[Any] = []  # so that ids stay unique
        self._met: set[int] = {id(a) for a in args if isinstance(a, Tensor)}
        self._queue: deque[tuple[str, Any]] = deque([("", function), *(("an argument", a) for a in args)])
        while self._queue and len(self._met) < _MANY:
            name, x = self._queue.popleft()
            if id(x) not in self._met:
                self._met.add(id(x))
                self._held.append(x)
                self._visit(name, x)

    def _visit(self, name: str, x: Any) -> None:
        if isinstance(x, Wrapper):
            self._queue.append((name, x.function))
        elif isinstance(x, Tensor):
            self.tensors.append(x)
        elif isinstance(x, _PLAIN):
            return
        elif isinstance(x, FromPure):
            self._visit_optimizer(name, x)
        elif isinstance(x, dict | types.MappingProxyType):
            holder = x if isinstance(x, dict) else None
            self._watch(name, x.values, [(f"{name}[{k!r}]", v) for k, v in list(x.items())], holder)
        elif isinstance(x, list | deque):
            self._watch(name, lambda: x, [(f"{name}[{i}]", v) for i, v in enumerate(x)], x)
        elif isinstance(x, tuple | set | frozenset):
            self._queue += [(f"{name}[...]", v) for v in x]
        elif isinstance(x, types.MethodType):
            self._queue += [(name, x.__func__), (name or "self", x.__self__)]
        elif isinstance(x, types.FunctionType):
            self._visit_function(x)
        elif isinstance(x, functools.partial):
            self._queue += [(name, x.func), *((name, a) for a in (*x.args, *x.keywords.values()))]
        elif isinstance(x, Module | Optimizer) or is_users_class(type(x)) or type(x).__module__.startswith("fnad.torch"):
            self._visit_object(name, x)

    def _watch(self, name: str, read: Callable[[], Any], parts: list[tuple[str, Any]], holder: Any = None) -> None:
        self.containers.append(Container(name, read, [label for label, _ in parts], holder))
        self._queue += parts

    def _visit_object(self, name: str, x: Any) -> None:
        fields = getattr(x, "__dict__", None)
        if isinstance(fields, dict):
            self._watch(name, fields.values, [(f"{name}.{k}", v) for k, v in fields.items()], fields)
        call = inspect.getattr_static(type(x), "forward" if isinstance(x, Module) else "__call__", None)
        if isinstance(call, types.FunctionType):
            self._queue.append(("", call))

    def _visit_optimizer(self, name: str, x: Any) -> None:
        self.optimizers.append(x)
        self._watch(f"{name}.param_groups", lambda: x.param_groups, [])
        for i, group in enumerate(x.param_groups):
            settings = [k for k, v in group.items() if k != "params" and k not in x.traced(group)]
            self._watch(
                f"{name}.param_groups[{i}]",
                lambda group=group, settings=settings: [group.get(k) for k in settings],  # type: ignore[misc]
                [(f"{name}.param_groups[{i}][{k!r}]", group[k]) for k in settings],
            )
            self._watch(f"{name}.param_groups[{i}]['params']", lambda group=group: group["params"], [])  # type: ignore[misc]
            self._queue += [("", p) for p in group["params"]]
        self._watch(f"{name}.state", x.state.values, [], x.state)
        for entry in list(x.state.values()):
            self._watch(f"{name}.state[...]", entry.values, [("", v) for v in entry.values()], entry)

    def _visit_function(self, f: types.FunctionType) -> None:
        code = f.__code__
        if is_packages(code.co_filename):  # a wrapper, perhaps, around a function of the user's
            cells = [c for c in f.__closure__ or () if _filled(c) and callable(c.cell_contents)]
            self._queue += [("", c.cell_contents) for c in cells]
            return
        for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            if _filled(cell):
                self._watch(name, lambda c=cell: (c.cell_contents,), [(name, cell.cell_contents)])  # type: ignore[misc]
        names = [n for n in _names(code) if n in f.__globals__]
        self._watch("", lambda: [f.__globals__.get(n) for n in names], [(n, f.__globals__[n]) for n in names])
        self._queue += [("a default", v) for v in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())]

    def unchanged(self) -> bool:
        return all(c.same() for c in self.containers)

    def changed(self) -> tuple[str, bool]:
        """The name of something that is not as it was (empty if there is nothing), and whether all such things were missing before."""
        found = [what for c in self.containers if (what := c.changed())[0]]
        return (found[0][0], all(missing for _, missing in found)) if found else ("", False)

    def restore(self) -> None:
        """Put back what dicts, lists and objects held."""
        for c in self.containers:
            c.restore()


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that code uses, functions inside it included."""
    yield from {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _names(c)
