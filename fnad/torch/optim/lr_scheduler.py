"""`torch.optim.lr_scheduler`: the schedules of `fnad.optim.schedules`, put into the groups of an optimizer at each `step()`.

A schedule here is a function of the number of steps. Where PyTorch computes a learning rate from the one before, one that was written into
a group in between is followed: the schedule goes on from it.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim import schedules as pure


class LRScheduler:
    """Base of all schedulers; of one's own: write `get_lr`, from `self.last_epoch` and `self.base_lrs`.

    Args:
        optimizer: The optimizer.
        last_epoch: The number of the last step; -1 begins anew.
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = optimizer.param_groups
        for i, group in enumerate(groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0")
        self.base_lrs = [group["initial_lr"] for group in groups]
        self.last_epoch = last_epoch
        self._last_lr: list[Any] = []
        self._given: list[Any] = list(self.base_lrs)
        """What this scheduler wrote into the groups last; at the beginning, what it takes for granted."""
        self._followed: dict[int, tuple[float, float]] = {}
        """For groups whose learning rates it does not determine alone: what they follow."""
        self.step()

    def settings(self, i: int, epoch: int) -> dict[str, Any]:
        """What group `i` is given at a step."""
        return {"lr": self.get_lr()[i]}

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups at `last_epoch`."""
        return [self.settings(i, self.last_epoch)["lr"] for i in range(len(self.base_lrs))]

    def get_last_lr(self) -> list[Any]:
        """The learning rates that were given last."""
        return self._last_lr

    def follow(self, i: int, lr: float, epoch: int) -> None:
        """Go on from the learning rate `lr` that group `i` has at `epoch`, though this scheduler gave another one."""

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step, or to a given one."""
        before, self.last_epoch = self.last_epoch, self.last_epoch + 1 if epoch is None else epoch
        for i, group in enumerate(self.optimizer.param_groups[: len(self.base_lrs)]):
            if epoch is None and (group["lr"] != self._given[i] or i in self._followed):
                self.follow(i, float(group["lr"]), before)
            for name, value in self.settings(i, self.last_epoch).items():
                if name == "momentum" and "betas" in group:
                    group["betas"] = (float(value), *group["betas"][1:])
                else:
                    group[name] = float(value)
            self._given[i] = group["lr"]
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        hidden = ("optimizer", "schedulers", "_schedulers", "_made")
        return {k: copy.deepcopy(v) for k, v in self.__dict__.items() if k not in hidden and not _holds_function(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        self.__dict__.update(copy.deepcopy(state_dict))


def _holds_function(x: Any) -> bool:
    return callable(x) or (isinstance(x, list | tuple) and any(map(callable, x)))


class _Pure(LRScheduler):
    """A schedule of `fnad.optim.schedules` per group, made by `make(i, base_lr)`."""

    _relative = True
    """Whether PyTorch computes a learning rate from the one before."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self._made: dict[int, Any] = {}
        super().__init__(optimizer, last_epoch)

    def make(self, i: int, base_lr: Any) -> Callable[[Any], Any]:
        raise NotImplementedError

    def settings(self, i: int, epoch: int) -> dict[str, Any]:
        base, shift = self._followed.get(i, (self.base_lrs[i], 0.0))
        if i not in self._made:
            self._made[i] = self.make(i, base)
        return {"lr": self._made[i](epoch) + shift}

    def follow(self, i: int, lr: float, epoch: int) -> None:
        """Schedules are base_lr times one function of the step plus another one: find the base_lr, or else add the difference."""
        if not self._relative:
            return
        low, high = (0.0, 1.0) if epoch == -1 else (float(self.make(i, b)(epoch)) for b in (0.0, 1.0))
        if high - low > 1e-12:
            self._followed[i] = (lr - low) / (high - low), 0.0
        else:
            self._followed[i] = self.base_lrs[i], lr - float(self.make(i, self.base_lrs[i])(epoch))
        self._made.pop(i, None)

    def forget(self) -> None:
        """Begin anew from the learning rates of the beginning, as part of another scheduler."""
        self._made.clear()
        self._followed.clear()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        super().load_state_dict(state_dict)
        self._made = {}


def _declare(name: str, schedule: Callable[..., Any], required: Sequence[str] = (), relative: bool = True, **options: Any) -> Any:
    """The class of a schedule: its options in PyTorch's order, those without a default first."""
    names = [*required, *options]

    def __init__(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        given = {**options, **dict(zip([*names, "last_epoch"], args, strict=False)), **kwargs}
        last_epoch = given.pop("last_epoch", -1)
        missing, unknown = [n for n in required if n not in given], set(given) - set(names)
        if missing or unknown or len(args) > len(names) + 1:
            raise TypeError(f"{name} takes optimizer, {', '.join(names)}, last_epoch; got {args}, {kwargs}")
        for key, value in given.items():
            setattr(self, key, value)
        _Pure.__init__(self, optimizer, last_epoch)

    def make(self: Any, i: int, base_lr: Any) -> Any:
        return schedule(base_lr, **{n: getattr(self, n) for n in names})

    body = {"__init__": __init__, "make": make, "_relative": relative}
    doc = f"`fnad.optim.schedules.{schedule.__name__}` as PyTorch's `{name}`: {', '.join(names)}."
    return type(name, (_Pure,), {**body, "__doc__": doc, "__module__": __name__})


StepLR = _declare("StepLR", pure.step_lr, ["step_size"], gamma=0.1)
MultiStepLR = _declare("MultiStepLR", pure.multi_step_lr, ["milestones"], gamma=0.1)
ConstantLR = _declare("ConstantLR", pure.constant_lr, factor=1.0 / 3, total_iters=5)
LinearLR = _declare("LinearLR", pure.linear_lr, start_factor=1.0 / 3, end_factor=1.0, total_iters=5)
ExponentialLR = _declare("ExponentialLR", pure.exponential_lr, ["gamma"])
PolynomialLR = _declare("PolynomialLR", pure.polynomial_lr, total_iters=5, power=1.0)
CosineAnnealingLR = _declare("CosineAnnealingLR", pure.cosine_annealing_lr, ["T_max"], eta_min=0.0)
CosineAnnealingWarmRestarts = _declare(
    "CosineAnnealingWarmRestarts", pure.cosine_annealing_warm_restarts, ["T_0"], False, T_mult=1, eta_min=0.0
)


class LambdaLR(_Pure):
    """The first learning rate times a function of the step: `fnad.optim.schedules.lambda_lr`."""

    _schedule = staticmethod(pure.lambda_lr)
    _relative = False

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def make(self, i: int, base_lr: Any) -> Callable[[Any], Any]:
        return self._schedule(base_lr, self.lr_lambdas[i])


class MultiplicativeLR(LambdaLR):
    """Each step times a function of the step: `fnad.optim.schedules.multiplicative_lr`."""

    _schedule = staticmethod(pure.multiplicative_lr)
    _relative = True


class _WithMomentum(LRScheduler):
    """A learning rate and a momentum that goes the other way."""

    def __init__(self, optimizer: Any, cycle_momentum: bool, last_epoch: int) -> None:
        if cycle_momentum and not any(name in optimizer.defaults for name in ("momentum", "betas")):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.cycle_momentum = cycle_momentum
        self._made: dict[int, tuple[Any, Any]] = {}
        super().__init__(optimizer, last_epoch)

    def make(self, i: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def settings(self, i: int, epoch: int) -> dict[str, Any]:
        if i not in self._made:
            self._made[i] = self.make(i)
        rate, momentum = self._made[i]
        return {"lr": rate(epoch), **({"momentum": momentum(epoch)} if self.cycle_momentum else {})}


def _each(x: Any, i: int) -> Any:
    return x[i] if isinstance(x, list | tuple) else x


class CyclicLR(_WithMomentum):
    """Up and down again and again: `fnad.optim.schedules.cyclic_lr` and `cyclic_momentum`."""

    def __init__(
        self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.rates, self.momenta = (base_lr, max_lr), (base_momentum, max_momentum)
        self.options = (step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode)
        super().__init__(optimizer, cycle_momentum, last_epoch)

    def make(self, i: int) -> tuple[Any, Any]:
        (low, high), (least, most) = ([_each(x, i) for x in pair] for pair in (self.rates, self.momenta))
        return pure.cyclic_lr(low, high, *self.options), pure.cyclic_momentum(least, most, *self.options)


class OneCycleLR(_WithMomentum):
    """Up once, and far down: `fnad.optim.schedules.one_cycle_lr` and `one_cycle_momentum`."""

    def __init__(
        self, optimizer: Any, max_lr: Any, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
        pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        self.total_steps, self.max_lr, self.momenta = total_steps, max_lr, (base_momentum, max_momentum)
        self.shape, self.factors, self.three_phase = (pct_start, anneal_strategy), (div_factor, final_div_factor), three_phase
        super().__init__(optimizer, cycle_momentum, last_epoch)

    def make(self, i: int) -> tuple[Any, Any]:
        rate = pure.one_cycle_lr(_each(self.max_lr, i), self.total_steps, *self.shape, *self.factors, self.three_phase)
        low, high = (_each(x, i) for x in self.momenta)
        return rate, pure.one_cycle_momentum(self.total_steps, *self.shape, low, high, self.three_phase)

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step; there are no more than `total_steps`."""
        following = self.last_epoch + 1 if epoch is None else epoch
        if following >= self.total_steps + 1:
            raise ValueError(f"Tried to step {following} times. The specified number of total steps is {self.total_steps}")
        super().step(epoch)


class SequentialLR(LRScheduler):
    """One scheduler after the other, each from its own beginning."""

    def __init__(self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("SequentialLR expects all schedulers to belong to the same optimizer")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        _begin_anew(optimizer, self._schedulers)
        super().__init__(optimizer, last_epoch)

    def settings(self, i: int, epoch: int) -> dict[str, Any]:
        scheduler, start = self._at(epoch)
        return scheduler.settings(i, epoch - start)

    def follow(self, i: int, lr: float, epoch: int) -> None:
        scheduler, start = self._at(epoch)
        if epoch + 1 not in self._milestones:  # there, the next one begins from the learning rate of the beginning
            scheduler.follow(i, lr, epoch - start)

    def _at(self, epoch: int) -> tuple[Any, int]:
        """The scheduler of a step, and the step at which it begins."""
        k = bisect.bisect_right(self._milestones, epoch)
        return self._schedulers[k], self._milestones[k - 1] if k else 0


def _begin_anew(optimizer: Any, schedulers: Sequence[Any]) -> None:
    """Take back what schedulers did to the groups when they were made."""
    for group in optimizer.param_groups:
        group["lr"] = group.get("initial_lr", group["lr"])
    for scheduler in schedulers:
        if isinstance(scheduler, _Pure):
            scheduler.forget()


class ChainedScheduler(LRScheduler):
    """The factors of several schedulers, multiplied."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self._schedulers = list(schedulers)
        self._scales: dict[int, float] = {}
        optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _begin_anew(optimizer, self._schedulers)
        super().__init__(optimizer)

    def settings(self, i: int, epoch: int) -> dict[str, Any]:
        base = self.base_lrs[i]
        factors = [s.settings(i, epoch)["lr"] / base for s in self._schedulers]
        return {"lr": base * math.prod(factors) * self._scales.get(i, 1.0)}

    def follow(self, i: int, lr: float, epoch: int) -> None:
        have = self.settings(i, max(epoch, 0))["lr"]
        if have:
            self._scales[i] = self._scales.get(i, 1.0) * lr / have


class ReduceLROnPlateau:
    """Lower learning rates when a metric no longer improves: `fnad.optim.schedules.reduce_lr_on_plateau`, and `step(metric)`."""

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if isinstance(min_lr, list | tuple) and len(min_lr) != len(optimizer.param_groups):
            raise ArgumentError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
        self.optimizer = optimizer
        self._rules = [
            pure.reduce_lr_on_plateau(mode, factor, patience, threshold, threshold_mode, cooldown, _each(min_lr, i), eps)
            for i in range(len(optimizer.param_groups))
        ]
        self._states = [rule.init(group["lr"]) for rule, group in zip(self._rules, optimizer.param_groups, strict=True)]
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    @property
    def best(self) -> float:
        return float(self._states[0].best)

    @property
    def num_bad_epochs(self) -> int:
        return int(self._states[0].num_bad_epochs)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that were given last."""
        return self._last_lr

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Take note of a metric."""
        for i, (rule, group) in enumerate(zip(self._rules, self.optimizer.param_groups, strict=True)):
            state = self._states[i]
            state = state._replace(lr=np.array(group["lr"], np.float64))  # the rate may have been changed from outside
            lr, self._states[i] = rule.update(float(metrics), state)
            group["lr"] = float(lr)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The states of the groups."""
        return {"states": [{k: v.item() for k, v in zip(s._fields, s, strict=True)} for s in self._states], "last_lr": self._last_lr}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        for i, (rule, state) in enumerate(zip(self._rules, state_dict["states"], strict=True)):
            fresh = rule.init(state["lr"])
            self._states[i] = type(fresh)(*[np.array(state[k], x.dtype) for k, x in zip(fresh._fields, fresh, strict=True)])
        self._last_lr = state_dict["last_lr"]
