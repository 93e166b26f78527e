"""State that a function reaches besides its result, compared before and after it is recorded.

What a function does to its arguments, to variables around it and to random generators happens while it is recorded, and not
when what was compiled runs. What can be seen of it costs time only when recording.
"""

from __future__ import annotations

import dis
import functools
import inspect
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.keep import contents
from fnad.core.tracer import Tracer
from fnad.errors import InPlaceError, RecordingWarning, describe_function, describe_line, is_packages, warn

_MANY, _DEEP, _FUNCTIONS = 2000, 4, 100  # entries, nesting and functions that are looked at
_NAMED = 4  # changes that a warning names
_MUTATORS = {
    *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add", "discard"),
    *("fill", "put", "appendleft", "itemset", "partition", "resize"),
}
_SCALARS = (bool, int, float, complex, str, bytes, type(None))


def _is(x: Any, kinds: Any) -> bool:
    """`isinstance` by the true class: what an object says of its class may be code of the user's."""
    return issubclass(type(x), kinds)


class _Variable(NamedTuple):
    """A variable of a function: its name, the code that uses it, its value now, and how to read it again."""

    name: str
    code: CodeType
    value: Any
    read: Callable[[], Any]


class _Picture:
    """What a value holds: the objects in it by path, and the contents of those that can change by themselves."""

    def __init__(self, name: str, value: Any) -> None:
        self.objects: dict[str, Any] = {}
        self.contents: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._add(name, value, 0)

    def _add(self, path: str, value: Any, depth: int) -> None:
        self.objects[path] = value  # held, so that ids stay unique
        if _is(value, _SCALARS) or id(value) in self._seen or len(self.objects) > _MANY:
            return
        self._seen.add(id(value))
        if _is(value, np.ndarray):
            self.contents[path] = _contents(value)
        elif is_generator(value):
            self.contents[path] = state_of(value)
        elif _is(value, set):
            self.contents[path] = frozenset(value)
        elif depth < _DEEP:
            for key, part in _parts(value):
                self._add(path + key, part, depth + 1)

    def changes(self, later: _Picture) -> list[str]:
        """The paths at which a later picture differs; of nested ones the outermost."""
        out: list[str] = []
        for path in [*self.objects, *(p for p in later.objects if p not in self.objects)]:
            missing = path not in self.objects or path not in later.objects
            changed = missing or not _same(self.objects[path], later.objects[path]) or self.contents.get(path) != later.contents.get(path)
            if changed and not any(path.startswith(outer) for outer in out):
                out.append(path)
        return out


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and _is(a, _SCALARS) and (a == b or a != a))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a container or an object of the user's holds, by key."""
    if _is(value, dict):
        yield from [(f"[{k!r}]", v) for k, v in list(dict.items(value))]
    elif _is(value, list | tuple | deque):
        yield from [(f"[{i}]", v) for i, v in enumerate(value)]
    elif not _is(value, type | ModuleType | FunctionType | MethodType) and is_users_class(type(value)):
        for name, v in _attributes(value):
            if not _is(getattr(type(value), name, None), functools.cached_property):
                yield f".{name}", v


def _attributes(x: Any) -> list[tuple[str, Any]]:
    """The attributes that an object holds itself, found without running code of its class."""
    try:
        return list(object.__getattribute__(x, "__dict__").items())
    except AttributeError:
        return []


def _contents(a: np.ndarray[Any, Any]) -> bytes:
    """Changes when entries of an array change that can be written."""
    return contents(a) if a.flags.writeable and not a.dtype.hasobject else b""


def is_generator(x: Any) -> bool:
    """Whether an object is a random generator of NumPy's or Python's."""
    return type(x).__module__.startswith(("numpy.random", "random")) and hasattr(x, "random")


def state_of(generator: Any) -> bytes:
    """The state of a random generator."""
    if hasattr(generator, "getstate"):
        return pickle.dumps(generator.getstate())
    numpys = getattr(generator, "bit_generator", None) or generator._bit_generator
    return pickle.dumps(numpys.state)


def is_users_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return cls.__module__ not in ("builtins", "fnad") and not is_packages(getattr(module, "__file__", None) or "")


@functools.lru_cache(4096)
def _names(code: CodeType) -> frozenset[str]:
    """The global names and attributes that code uses, functions inside it included."""
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(code.co_names).union(*inner)


class Watch:
    """The variables that a function and those it calls can reach, and its static arguments, as they are now."""

    def __init__(self, function: Any, static: Iterable[tuple[str, Any]] = ()) -> None:
        self._function = function
        self._codes: list[CodeType] = []
        self._variables: dict[tuple[int, str], tuple[_Variable, _Picture]] = {}
        self._queue: deque[Any] = deque([function])
        self._met: set[int] = set()
        self._held: list[Any] = []
        code = getattr(inspect.unwrap(function), "__code__", None)
        for name, value in static:
            self._consider(name, value, code, lambda v=value: v)  # type: ignore[misc]
        while self._queue and len(self._held) < _FUNCTIONS:
            self._visit(self._queue.popleft())
        self._global = _global_generators()

    def _visit(self, f: Any) -> None:
        if id(f) in self._met:
            return
        self._met.add(id(f))
        self._held.append(f)
        if _is(f, MethodType):
            self._queue.append(f.__func__)
            self._consider("self", f.__self__, getattr(f.__func__, "__code__", None), lambda: f.__self__)
        elif _is(f, functools.partial):
            self._queue += [f.func, *filter(callable, (*f.args, *f.keywords.values()))]
        elif _is(f, FunctionType):
            self._visit_function(f)
        elif is_users_class(type(f)) and callable(f) and _is(type(f).__call__, FunctionType):
            call = type(f).__call__
            self._queue.append(call)
            for name, value in _attributes(f):
                self._consider(f"self.{name}", value, call.__code__, lambda name=name: vars(f).get(name))  # type: ignore[misc]
        if (wrapped := _wrapped(f)) is not None:
            self._queue.append(wrapped)

    def _visit_function(self, f: FunctionType) -> None:
        code = f.__code__
        cells = list(zip(code.co_freevars, f.__closure__ or (), strict=True))
        if is_packages(code.co_filename):  # a wrapper, such as that of a transform
            self._queue += [c.cell_contents for _, c in cells if _filled(c) and callable(c.cell_contents)]
            return
        self._codes.append(code)
        for name, cell in cells:
            if _filled(cell):
                self._consider(name, cell.cell_contents, code, lambda c=cell: c.cell_contents)  # type: ignore[misc]
        names = f.__globals__
        for name in _names(code):
            if name in names:
                self._consider(name, names[name], code, lambda n=name: names.get(n))  # type: ignore[misc]
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._consider("a default", value, code, lambda v=value: v)  # type: ignore[misc]

    def _consider(self, name: str, value: Any, code: CodeType | None, read: Callable[[], Any]) -> None:
        if _is(value, ModuleType):
            if not is_packages(getattr(value, "__file__", None) or "") and code is not None:
                held = vars(value)
                self._queue += [held[n] for n in _names(code) if _is(held.get(n), FunctionType)]
        elif _is(value, FunctionType | MethodType | functools.partial) or _wrapped(value) is not None:
            self._queue.append(value)
        elif not _is(value, type | Tracer) and code is not None:
            if is_users_class(type(value)):
                methods = (getattr(type(value), n, None) for n in (*_names(code), "__call__"))
                self._queue += [m for m in methods if _is(m, FunctionType)]
            key = id(value), name
            if key not in self._variables:
                self._variables[key] = _Variable(name, code, value, read), _Picture(name, value)

    def report(self) -> None:
        """Warn of what has changed since."""
        state: dict[str, str] = {}
        drawn: dict[str, str] = {}
        for variable, before in self._variables.values():
            value = variable.read()
            if variable.value is None and not _is(value, Tracer):
                continue  # made when it was first needed
            later = _Picture(variable.name, value)
            for path in before.changes(later):
                kind = drawn if is_generator(later.objects.get(path)) else state
                kind[path] = _line([variable.code], variable.name)
        for name, now in _global_generators().items():
            if self._global.get(name, now) != now:
                drawn[name] = _line(self._codes, "random")
        recorded = {"function": describe_function(self._function)}
        if state:
            warn(
                RecordingWarning,
                "jit: variables were changed while the function was recorded; calls of what is compiled will not change them",
                got={**recorded, **_first(state)},
                fix="return the new value and keep it outside, or pass the variable as an argument",
            )
        if drawn:
            warn(
                RecordingWarning,
                "jit: random numbers were drawn while the function was recorded; every call of what is compiled will use the same ones",
                got={**recorded, **_first(drawn)},
                fix="draw the numbers before the call and pass them in as an argument",
            )


def _wrapped(x: Any) -> Any:
    """The function inside a wrapper."""
    return dict(_attributes(x)).get("__wrapped__")


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _first(changes: dict[str, str]) -> dict[str, str]:
    shown = dict(list(changes.items())[:_NAMED])
    return {**shown, "and more": len(changes) - _NAMED} if len(changes) > _NAMED else shown  # type: ignore[dict-item]


def _global_generators() -> dict[str, bytes]:
    """The state of the generators behind `np.random.normal()` and `random.random()`, where these modules are in use."""
    found = {}
    if "random" in sys.modules:
        found["the global generator of random"] = pickle.dumps(sys.modules["random"].getstate())
    if "numpy.random" in sys.modules:
        found["the global generator of np.random"] = pickle.dumps(np.random.get_state(legacy=False))
    return found


def _line(codes: Sequence[CodeType], name: str) -> str:
    """Where code changes a variable, as far as can be seen; else where it uses it first."""
    used = ""
    for code in codes:
        lines: dict[int, list[dis.Instruction]] = {}
        line = code.co_firstlineno
        for i in dis.get_instructions(code):
            line = (i.positions.lineno if i.positions else None) or line
            lines.setdefault(line, []).append(i)
        for line, instructions in lines.items():
            if not any(i.argval == name or (_is(i.argval, tuple) and name in i.argval) for i in instructions):
                continue
            place = describe_line(code.co_filename, line, code.co_name)
            if any(_changes(i, name) for i in instructions):
                return place
            used = used or place
        inner = [c for c in code.co_consts if isinstance(c, CodeType)]
        used = used or _line(inner, name) if inner else used
    return used


def _changes(i: dis.Instruction, name: str) -> bool:
    stores = i.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR")
    return stores or i.argval in _MUTATORS or (i.opname in ("STORE_GLOBAL", "STORE_DEREF") and i.argval == name)


def check_arguments(given: Any, before: Sequence[Any], spec: tree.Spec, result: Any, labels: Sequence[str], function: Any) -> None:
    """Raise or warn if a function changed the containers that its arguments came in, of which the caller has others.

    Args:
        given: (args, kwargs) as the function leaves them.
        before: Their leaves before the call, and
        spec: their structure.
        result: What the function returned.
        labels: The names of the positional arguments.
        function: The function, for the message.

    Raises:
        InPlaceError: a value put into an argument is not returned.
    """
    after, found = tree.flatten(given)
    if found == spec and all(a is b for a, b in zip(after, before, strict=True)):
        return
    old = dict(zip(tree.argument_paths(spec, labels), before, strict=True))
    new = dict(zip(tree.argument_paths(found, labels), after, strict=True))
    kept = {*map(id, before), *map(id, tree.leaves(result))}
    changed = [p for p in new if p not in old or new[p] is not old[p]]
    lost = [p for p in changed if id(new[p]) not in kept]
    path = (lost or changed or [p for p in old if p not in new] or ["its structure"])[0]
    got = {"function": describe_function(function), "argument": path, "at": _made_at(new.get(path))}
    got = {k: v for k, v in got.items() if v}
    if lost:
        raise InPlaceError(
            "jit: an argument was changed in place and the new value is not returned, so it would be lost: the caller's stays as it is",
            got=got,
            fix="return the new value; to use the container for yourself, copy it first: p = dict(p), items = list(items)",
        )
    warn(
        RecordingWarning,
        "jit: an argument was changed in place; the caller's stays as it is, and only the result has the change",
        got=got,
        fix="make a new container, {**p, 'w': new} or [*items, new], and return it",
    )


def _made_at(x: Any) -> str:
    """The line that computed a recorded value."""
    variable = getattr(x, "variable", None) if _is(x, Tracer) else None
    return next((e.line for e in x._trace.equations if variable in e.outputs), "") if variable is not None else ""
