"""Optimizers as pure functions: `state = opt.init(params)`, `updates, state = opt.update(grads, state, params)`.

They follow PyTorch's rules to the letter, carry their state in the open under PyTorch's names, and change no input.
`base` holds what all share, `rule` the skeleton of those that treat each leaf by itself, `schedules` learning rates as functions of
the step.
"""

from typing import NoReturn as _NoReturn

from fnad.core import hints as _hints
from fnad.optim import schedules as schedules
from fnad.optim.adam import AdamaxState as AdamaxState
from fnad.optim.adam import AdamState as AdamState
from fnad.optim.adam import NAdamState as NAdamState
from fnad.optim.adam import RAdamState as RAdamState
from fnad.optim.adam import adam as adam
from fnad.optim.adam import adamax as adamax
from fnad.optim.adam import adamw as adamw
from fnad.optim.adam import nadam as nadam
from fnad.optim.adam import radam as radam
from fnad.optim.adaptive import AdadeltaState as AdadeltaState
from fnad.optim.adaptive import AdagradState as AdagradState
from fnad.optim.adaptive import RMSpropState as RMSpropState
from fnad.optim.adaptive import adadelta as adadelta
from fnad.optim.adaptive import adagrad as adagrad
from fnad.optim.adaptive import rmsprop as rmsprop
from fnad.optim.averages import AveragedState as AveragedState
from fnad.optim.averages import LookaheadState as LookaheadState
from fnad.optim.averages import averaged_params as averaged_params
from fnad.optim.averages import ema as ema
from fnad.optim.averages import lookahead as lookahead
from fnad.optim.averages import swa as swa
from fnad.optim.base import Optimizer as Optimizer
from fnad.optim.base import apply_updates as apply_updates
from fnad.optim.combine import add_decayed_weights as add_decayed_weights
from fnad.optim.combine import chain as chain
from fnad.optim.combine import clip_by_global_norm as clip_by_global_norm
from fnad.optim.combine import clip_by_value as clip_by_value
from fnad.optim.combine import global_norm as global_norm
from fnad.optim.combine import masked as masked
from fnad.optim.combine import partition as partition
from fnad.optim.combine import set_to_zero as set_to_zero
from fnad.optim.lbfgs import LBFGSState as LBFGSState
from fnad.optim.lbfgs import lbfgs as lbfgs
from fnad.optim.matrices import AdafactorState as AdafactorState
from fnad.optim.matrices import MuonState as MuonState
from fnad.optim.matrices import adafactor as adafactor
from fnad.optim.matrices import muon as muon
from fnad.optim.modern import AdaBeliefState as AdaBeliefState
from fnad.optim.modern import AdanState as AdanState
from fnad.optim.modern import LAMBState as LAMBState
from fnad.optim.modern import LionState as LionState
from fnad.optim.modern import adabelief as adabelief
from fnad.optim.modern import adan as adan
from fnad.optim.modern import lamb as lamb
from fnad.optim.modern import lion as lion
from fnad.optim.schedule_free import ScheduleFreeState as ScheduleFreeState
from fnad.optim.schedule_free import schedule_free_adamw as schedule_free_adamw
from fnad.optim.schedule_free import schedule_free_sgd as schedule_free_sgd
from fnad.optim.sgd import ASGDState as ASGDState
from fnad.optim.sgd import RpropState as RpropState
from fnad.optim.sgd import SGDState as SGDState
from fnad.optim.sgd import asgd as asgd
from fnad.optim.sgd import rprop as rprop
from fnad.optim.sgd import sgd as sgd
from fnad.optim.wrappers import AccumulateState as AccumulateState
from fnad.optim.wrappers import InjectState as InjectState
from fnad.optim.wrappers import SkipNotFiniteState as SkipNotFiniteState
from fnad.optim.wrappers import accumulate as accumulate
from fnad.optim.wrappers import inject_hyperparams as inject_hyperparams
from fnad.optim.wrappers import sam as sam
from fnad.optim.wrappers import skip_not_finite as skip_not_finite


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _hints.missing_in(__name__, name, globals(), _hints.OPTIM)
