"""The bridge between the pure optimizers of fnad and PyTorch's classes: groups, state under its parameter, `step()`.

A step gathers gradients, parameters and state of a group, calls the pure `update`, and adds what it returns to the parameters. So both
faces give the same bits. `state[p]` shows the pure state of one parameter.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fnad import optim as pure
from fnad._config import CHANGED
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, UnknownNameError
from fnad.optim.rule import rule_of
from fnad.torch._mode import STATE
from fnad.torch._tensor import Tensor, make
from fnad.torch.optim._programs import Programs

_IGNORED = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
"""Options of PyTorch that choose between its implementations."""


_SCHEDULED = frozenset(("lr", "momentum", "betas", "weight_decay"))


class Optimizer:
    """Base of all optimizers; also of those that users write.

    Args:
        params: Parameters; or dicts with the key "params" and settings of their own; or pairs of name and parameter.
        defaults: Settings of groups that do not have their own.

    Raises:
        ValueError: there are no parameters, or one is no leaf or in two groups.
        TypeError: something is no tensor.

    Reference: `torch.optim.Optimizer` of PyTorch 2.13.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor")
        self.defaults = defaults
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters, with settings of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change"
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and isinstance(params[0], tuple):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if p._node is not None:
                raise ValueError("can't optimize a non-leaf Tensor")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if len({id(p) for p in params}) != len(params) or any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        group = {"params": params, **{k: v for k, v in param_group.items() if k != "params"}}
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; `closure`, if given, computes the loss and its gradients first."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with the parameters numbered."""
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
        state = {numbers[id(p)] if isinstance(p, Tensor) else p: dict(entry) for p, entry in self.state.items()}
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": state, "param_groups": [{**{k: v for k, v in g.items() if k != "params"}, "params": g["params"]} for g in groups]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over state and settings; they are copied.

        Raises:
            ValueError: groups or their sizes differ.
        """
        mine, theirs = self.param_groups, state_dict["param_groups"]
        if len(mine) != len(theirs):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(mine, theirs, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number = {n: p for a, b in zip(mine, theirs, strict=True) for p, n in zip(a["params"], b["params"], strict=True)}
        state: Any = defaultdict(dict)
        for n, entry in state_dict["state"].items():
            p = by_number.get(n, n)
            state[p] = {name: self._loaded(name, value, p) for name, value in entry.items()}
        self.state = state
        for a, b in zip(mine, theirs, strict=True):
            a.update({k: v for k, v in b.items() if k != "params"})

    def _loaded(self, name: str, value: Any, p: Any) -> Any:
        """A copy of an entry of a loaded state; what is shaped like its parameter has its dtype."""
        if not isinstance(value, Tensor):
            return value
        data = value._data.copy()
        if name != "step" and isinstance(p, Tensor) and p._data.dtype.kind == "f" and data.shape == p._data.shape:
            data = data.astype(p._data.dtype)
        return make(data)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {k}: {group[k]}" for k in sorted(group) if k != "params")]
        return "\n".join([*lines, ")"])


def closure_loss(closure: Callable[[], Any] | None) -> Any:
    """What a closure returns, recorded whatever surrounds the step."""
    if closure is None:
        return None
    before, STATE.recording = STATE.recording, True
    try:
        return closure()
    finally:
        STATE.recording = before


class FromPure(Optimizer):
    """An optimizer of `fnad.optim` by its name, with the options that its class declares, in PyTorch's order.

    Args:
        params: See `Optimizer`.
        args: Options in their order.
        kwargs: Options by name; those that choose between PyTorch's implementations (`foreach`, `fused`, ...) have no effect.
    """

    _pure = ""
    _options: dict[str, Any] = {}  # noqa: RUF012
    _maximizes: tuple[str, ...] = ("maximize",)

    def __init__(self, params: Iterable[Any], *args: Any, **kwargs: Any) -> None:
        names = list(self._options)
        unknown = set(kwargs) - set(names) - set(_IGNORED) - set(self._maximizes)
        if len(args) > len(names) or unknown:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {next(iter(unknown), args[-1:])!r}")
        if not hasattr(pure, self._pure):
            raise UnknownNameError(f"torch.optim.{type(self).__name__} needs fnad.optim.{self._pure}, which does not exist")
        defaults = {**self._options, **dict.fromkeys(self._maximizes, False), **_IGNORED, **dict(zip(names, args, strict=False)), **kwargs}
        self._made: dict[Any, Any] = {}
        self._programs = Programs()
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters, with settings of their own."""
        super().add_param_group(param_group)
        try:
            self.pure(self.param_groups[-1])
        except ArgumentError:
            self.param_groups.pop()
            raise

    def pure(self, group: dict[str, Any]) -> Any:
        """The pure optimizer with the settings of a group."""
        names = (*self._options, *self._maximizes)
        key = tuple([group[name] for name in names])
        try:
            return self._made[key]
        except (KeyError, TypeError):
            pass
        given = {name: _number(group[name]) for name in names}
        found = self.make(given)
        if any(isinstance(y, Tracer) for x in given.values() for y in (x if x.__class__ is tuple else (x,))):
            return found
        if len(self._made) > 8 + len(self.param_groups):  # a schedule gives a new learning rate each time
            self._made.clear()
        with contextlib.suppress(TypeError):  # a setting that is no key
            self._made[key] = found
        return found

    def begin(self) -> bool:
        """Make the state of all parameters that may get gradients; whether there was something to do."""
        missing = [(g, p) for g in self.param_groups for p in g["params"] if p._req and not self.state.get(p)]
        for group, p in missing:
            self._begin(self.pure(group), p)
        return bool(missing)

    def traced(self, group: dict[str, Any]) -> list[str]:
        """The settings that a compiled step takes as arguments: what schedules change. A 0 is none: it leaves out a part of the formula."""
        return [name for name in self._options if name in _SCHEDULED and _numbers(group[name])]

    def make(self, options: dict[str, Any]) -> Any:
        return rule_of(getattr(pure, self._pure)(**options))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient; returns what `closure` returns."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if params:
                self._update(group, self.pure(group), params)
        return loss

    def _update(self, group: dict[str, Any], rule: Any, params: list[Any]) -> None:
        entries = [self.state.get(p) or self._begin(rule, p) for p in params]
        plain = not any(isinstance(p._data, Tracer) or isinstance(p._grad._data, Tracer) for p in params)
        if plain and rule.elementwise and not CHANGED.get() and self._together(group, rule, params, entries):
            return
        arrays = [p._data for p in params]
        columns = {f: [e[f]._data if f in e else None for e in entries] for f in rule.fields}
        updates, new = rule.step([p._grad._data for p in params], arrays, columns)
        for p, a, u in zip(params, arrays, updates, strict=True):
            if plain:
                np.add(a, u, out=a)
            else:
                p._data = a + u
            p._counter[0] += 1
        for f, column in new.items():
            for entry, x in zip(entries, column, strict=True):
                if x is not None:
                    entry[f]._data = x

    def _together(self, group: dict[str, Any], rule: Any, params: list[Any], entries: list[Any]) -> bool:
        """Update all parameters of a group by one program, if that can be had."""
        fields = [f for f, start in rule.arrays.items() if start is not None]
        bases = [id(p._data.base) for p in params if p._data.base is not None]
        if len(set(bases)) < len(bases):  # parameters on the same memory see each other's updates
            return False
        try:
            columns = [[e[f] for e in entries] for f in fields]
            scalars = [[e[f]._data for e in entries] for f in rule.scalars]
            steps = [e["step"] for e in entries]
        except KeyError:  # a loaded state without some of the arrays
            return False
        numbers = rule.step_numbers([s._data for s in steps], scalars, params)
        distinct = list({id(n): n for n in numbers}.values())
        arrays = [x for n in distinct for x in n.vector]
        changed = []
        for p, *row in zip(params, *columns, strict=True):
            changed.append(p)
            changed += row
            arrays += [p._grad._data, p._data, *[x._data for x in row]]
        which = [0] * len(params) if len(distinct) == 1 else [distinct.index(n) for n in numbers]
        new = self._programs.run(group, rule, numbers[0].names, fields, which, arrays)
        if new is None:
            return False
        for x, out in zip(changed, new, strict=True):
            if out is not x._data:
                np.copyto(x._data, out)
            x._counter[0] += 1
        for s, entry, n in zip(steps, entries, numbers, strict=True):
            s._data += 1
            s._counter[0] += 1
            for f in rule.scalars:
                entry[f]._data = np.array(n.values[f], np.float64)
        return True

    def _begin(self, rule: Any, p: Any) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        state = rule.init([p._data])
        entry: dict[str, Any] = self.state[p]
        for f in rule.fields:
            (x,) = getattr(state, f)
            if x is not None:
                entry[f] = make(x)
        return entry

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over state and settings; they are copied. A state without steps (of PyTorch's SGD) counts as one step old."""
        super().load_state_dict(state_dict)
        for p, entry in self.state.items():
            if isinstance(p, Tensor) and entry:
                step = entry.get("step", 1)
                entry["step"] = make(np.array(_number(step), np.int64))
                for name in [n for n, x in entry.items() if x is None]:
                    del entry[name]

    def _loaded(self, name: str, value: Any, p: Any) -> Any:
        """Numbers that a parameter carries are float64, also where the parameter is a number itself."""
        if name in self.pure(self.param_groups[0]).scalars:
            return make(np.array(_number(value), np.float64))
        return super()._loaded(name, value, p)


def _numbers(x: Any) -> bool:
    return all(map(_numbers, x)) and bool(x) if x.__class__ is tuple else x.__class__ is float and x != 0


def _number(x: Any) -> Any:
    return (x._data if isinstance(x._data, Tracer) else x.item()) if isinstance(x, Tensor) else x


def declare(name: str, maximizes: tuple[str, ...] = ("maximize",), **options: Any) -> Any:
    """The class of an optimizer of `fnad.optim`, with PyTorch's defaults."""
    doc = f"`fnad.optim.{name.lower()}` as PyTorch's `torch.optim.{name}`. Options: {', '.join((*options, *maximizes))}."
    body = {"_pure": name.lower(), "_options": options, "_maximizes": maximizes, "__doc__": doc, "__module__": "fnad.torch.optim"}
    return type(name, (FromPure,), body)


__all__ = ["FromPure", "Optimizer", "closure_loss", "declare"]
