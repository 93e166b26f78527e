"""Modules that hold others."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


def _position(i: Any, n: int) -> int:
    i = operator.index(i)
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of range")
    return i % n


class _Listed(Module):
    """Members under the names "0", "1", ... of one group."""

    _group = "_modules"

    def _members(self) -> dict[str, Any]:
        return self.__dict__[self._group]

    def _set(self, members: Iterable[Any]) -> None:
        self._members().clear()
        for i, m in enumerate(members):
            setattr(self, str(i), m)

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members().values())

    def __getitem__(self, i: Any) -> Any:
        members = list(self._members().values())
        if isinstance(i, slice):
            return type(self)(members[i])
        return members[_position(i, len(members))]

    def __setitem__(self, i: int, member: Any) -> None:
        setattr(self, list(self._members())[_position(i, len(self))], member)

    def __delitem__(self, i: Any) -> None:
        members = list(self._members().values())
        del members[i]
        self._set(members)

    def append(self, member: Any) -> Any:
        """Add one at the end."""
        setattr(self, str(len(self)), member)
        return self

    def extend(self, members: Iterable[Any]) -> Any:
        """Add several at the end."""
        for m in members:
            self.append(m)
        return self

    def insert(self, index: int, member: Any) -> Any:
        """Add one in front of another."""
        members = list(self)
        members.insert(index, member)
        self._set(members)
        return self


class Sequential(_Listed):
    """Modules, each called with what the one before returned.

    Args:
        args: The modules; or one dict of them by name.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        for name, module in (
            args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else ((str(i), m) for i, m in enumerate(args))
        ):
            self.add_module(name, module)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Sequential(dict(list(self._modules.items())[i]))
        return super().__getitem__(i)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Listed):
    """A list whose modules are found by the module that has it.

    Args:
        modules: The modules.
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def __repr__(self) -> str:
        lines, number = [], 0
        for text, equal in itertools.groupby(map(repr, self)):  # equal ones after each other are printed once
            count = len(list(equal))
            name = f"({number})" if count == 1 else f"({number}-{number + count - 1})"
            lines.append(f"{name}: {'' if count == 1 else f'{count} x '}{text}".replace("\n", "\n  "))
            number += count
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)" if lines else f"{self._get_name()}()"


class ParameterList(_Listed):
    """A list of parameters; tensors become parameters.

    Args:
        values: The parameters.
    """

    _group = "_parameters"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def append(self, member: Any) -> Any:
        """Add one at the end."""
        return super().append(member if isinstance(member, Parameter) else Parameter(member))

    def __repr__(self) -> str:
        lines = [f"  ({i}): Parameter containing: [{p.type()} of size {'x'.join(map(str, p.shape))}]" for i, p in enumerate(self)]
        return "\n".join(["ParameterList(", *lines, ")"])


class _Named(Module):
    _group = "_modules"

    def _members(self) -> dict[str, Any]:
        return self.__dict__[self._group]

    def __getitem__(self, key: str) -> Any:
        return self._members()[key]

    def __setitem__(self, key: str, member: Any) -> None:
        setattr(self, key, member) if self._group == "_parameters" else self.add_module(key, member)

    def __delitem__(self, key: str) -> None:
        del self._members()[key]

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __contains__(self, key: str) -> bool:
        return key in self._members()

    def keys(self) -> Any:
        return self._members().keys()

    def values(self) -> Any:
        return self._members().values()

    def items(self) -> Any:
        return self._members().items()

    def update(self, members: Any) -> None:
        """Add several."""
        for key, m in members.items() if isinstance(members, Mapping) else members:
            self[key] = m

    def pop(self, key: str) -> Any:
        """Take one away."""
        return self._members().pop(key)


class ModuleDict(_Named):
    """A dict whose modules are found by the module that has it.

    Args:
        modules: The modules by name.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update({} if modules is None else modules)


class ParameterDict(_Named):
    """A dict of parameters; tensors become parameters.

    Args:
        parameters: The parameters by name.
    """

    _group = "_parameters"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update({} if parameters is None else parameters)

    def __setitem__(self, key: str, member: Any) -> None:
        setattr(self, key, member if isinstance(member, Parameter) else Parameter(member))
