"""Python made for one tree structure: it builds such trees, or takes them apart, several times faster than a general walk.

For dicts, tuples, lists and named tuples only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Build = Callable[[Iterable[Any]], Any]


def flattener(build: Build, leaves: int) -> Callable[[Any], Any] | None:
    """A function from the trees that `build` makes of so many leaves to the list of these; None if there are other nodes."""
    known = _Template(build, leaves)
    return known.function("x", [*known.taking("x"), f"return [{known.names}]"])


def unflattener(build: Build, leaves: int) -> Callable[[Any], Any] | None:
    """What `build` does, made for the structure; None if there are other nodes."""
    known = _Template(build, leaves)
    return known.function("x", [*([f"{known.names}, = x"] if leaves else []), f"return {known.source}"])


class _Slot:
    """Stands where leaf `number` goes."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Template:
    def __init__(self, build: Build, leaves: int) -> None:
        self.scope: dict[str, Any] = {"_new": tuple.__new__}
        self.dicts: dict[str, list[Any]] = {}
        self.plain = True  # no nodes but those that can be written down
        self.names = ", ".join(f"l{i}" for i in range(leaves))
        self.example = build([_Slot(i) for i in range(leaves)])
        self.source = ""
        try:
            self.source = self.building(self.example)
        except RecursionError:
            self.plain = False

    def name(self, value: Any) -> str:
        name = f"_{len(self.scope)}"
        self.scope[name] = value
        return name

    def building(self, node: Any) -> str:
        """The expression that makes a node."""
        kind = node.__class__
        if kind is _Slot:
            return f"l{node.number}"
        if node is None:
            return "None"
        if kind is dict:
            return f"{{{', '.join(f'{self.name(k)}: {self.building(v)}' for k, v in node.items())}}}"
        if kind is list:
            return f"[{', '.join(map(self.building, node))}]"
        if kind is tuple or _is_plain_named_tuple(kind):
            made = f"({', '.join(map(self.building, node))}{',' * (len(node) == 1)})"
            return made if kind is tuple else f"_new({self.name(kind)}, {made})"
        self.plain = False
        return ""

    def taking(self, name: str) -> list[str]:
        """The statements that take apart what the variable holds."""
        lines: list[str] = []
        if self.plain:
            self._take(self.example, name, lines)
        if self.dicts:  # the keys of all, and their order, in one comparison
            keys = self.name([k for keys in self.dicts.values() for k in keys])
            lines.append(f"if [{', '.join(f'*{d}' for d in self.dicts)}] != {keys}: raise ValueError")
        return lines

    def _take(self, node: Any, name: str, lines: list[str]) -> None:
        kind = node.__class__
        if kind is _Slot:
            lines.append(f"l{node.number} = {name}")
        elif node is None:
            lines.append(f"if {name} is not None: raise ValueError")
        else:
            lines.append(f"if {name}.__class__ is not {self.name(kind)}: raise ValueError")
            parts = {f"n{len(lines)}_{k}": part for k, part in enumerate(node.values() if kind is dict else node)}
            if kind is dict:
                self.dicts[name] = [*node]
            values = f"{name}{'.values()' * (kind is dict)}"
            lines.append(f"{', '.join(parts)}, = {values}" if parts else f"if {name}: raise ValueError")  # of another length: ValueError
            for part, value in parts.items():
                self._take(value, part, lines)

    def function(self, argument: str, lines: list[str]) -> Callable[[Any], Any] | None:
        if not self.plain:
            return None
        try:
            exec("\n    ".join([f"def made({argument}):", *lines]), self.scope)
        except SyntaxError:  # nested more deeply than Python reads
            return None
        made: Callable[[Any], Any] = self.scope["made"]
        return made


def _is_plain_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and kind.__new__.__module__ == f"namedtuple_{kind.__name__}"
