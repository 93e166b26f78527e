"""`torch.optim`: the optimizers of `fnad.optim`, with PyTorch's parameter groups and state."""

from __future__ import annotations

from typing import Any, NoReturn

from fnad import optim as _pure
from fnad.errors import UnknownNameError
from fnad.optim.rule import rule_of as _rule_of
from fnad.torch.optim import lr_scheduler as lr_scheduler
from fnad.torch.optim.lbfgs import LBFGS as LBFGS
from fnad.torch.optim.optimizer import FromPure as FromPure
from fnad.torch.optim.optimizer import Optimizer as Optimizer
from fnad.torch.optim.optimizer import declare as _declare

_ADAM: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}

SGD = _declare("SGD", lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False)
Adam = _declare("Adam", ("maximize", "decoupled_weight_decay"), **_ADAM, weight_decay=0, amsgrad=False)
AdamW = _declare("AdamW", **_ADAM, weight_decay=1e-2, amsgrad=False)
Adamax = _declare("Adamax", **{**_ADAM, "lr": 2e-3}, weight_decay=0)
NAdam = _declare("NAdam", **{**_ADAM, "lr": 2e-3}, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False)
RAdam = _declare("RAdam", **_ADAM, weight_decay=0, decoupled_weight_decay=False)
Adagrad = _declare("Adagrad", lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10)
Adadelta = _declare("Adadelta", lr=1.0, rho=0.9, eps=1e-6, weight_decay=0)
RMSprop = _declare("RMSprop", lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False)
Rprop = _declare("Rprop", lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50))
Adafactor = _declare("Adafactor", lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0)
Muon = _declare(
    "Muon", (), lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5,
    adjust_lr_fn=None,
)  # fmt: skip
ASGD = _declare("ASGD", lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0)


def _adam(self: Any, options: dict[str, Any]) -> Any:
    decoupled = options.pop("decoupled_weight_decay")
    return _rule_of((_pure.adamw if decoupled else _pure.adam)(**options))


Adam.make = _adam


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(
        f"torch.optim.{name} does not exist in fnad.torch", fix="fnad.optim has pure optimizers; torch.optim.FromPure makes a class of one"
    )
