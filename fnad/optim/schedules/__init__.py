"""Learning rates as functions of the step: `schedule(step) -> number`, with the names and values of PyTorch's `lr_scheduler`.

A schedule stands in the place of any number of an optimizer, `fnad.optim.adam(lr=fnad.optim.schedules.step_lr(0.1, 30))`. The step
counts updates from 0. Where PyTorch steps a scheduler once per epoch, give the lengths in updates. Steps may be traced.
"""

from typing import NoReturn as _NoReturn

from fnad.core import hints as _hints
from fnad.optim.schedules.base import Schedule as Schedule
from fnad.optim.schedules.combine import chained_scheduler as chained_scheduler
from fnad.optim.schedules.combine import lambda_lr as lambda_lr
from fnad.optim.schedules.combine import multiplicative_lr as multiplicative_lr
from fnad.optim.schedules.combine import sequential_lr as sequential_lr
from fnad.optim.schedules.cycles import cosine_annealing_warm_restarts as cosine_annealing_warm_restarts
from fnad.optim.schedules.cycles import cyclic_lr as cyclic_lr
from fnad.optim.schedules.cycles import cyclic_momentum as cyclic_momentum
from fnad.optim.schedules.cycles import one_cycle_lr as one_cycle_lr
from fnad.optim.schedules.cycles import one_cycle_momentum as one_cycle_momentum
from fnad.optim.schedules.decays import constant_lr as constant_lr
from fnad.optim.schedules.decays import cosine_annealing_lr as cosine_annealing_lr
from fnad.optim.schedules.decays import exponential_lr as exponential_lr
from fnad.optim.schedules.decays import linear_lr as linear_lr
from fnad.optim.schedules.decays import multi_step_lr as multi_step_lr
from fnad.optim.schedules.decays import polynomial_lr as polynomial_lr
from fnad.optim.schedules.decays import step_lr as step_lr
from fnad.optim.schedules.decays import swa_lr as swa_lr
from fnad.optim.schedules.decays import warmup_cosine as warmup_cosine
from fnad.optim.schedules.decays import warmup_stable_decay as warmup_stable_decay
from fnad.optim.schedules.plateau import PlateauScheduler as PlateauScheduler
from fnad.optim.schedules.plateau import PlateauState as PlateauState
from fnad.optim.schedules.plateau import reduce_lr_on_plateau as reduce_lr_on_plateau


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _hints.missing_in(__name__, name, globals(), {})
