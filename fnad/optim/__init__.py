"""Optimizers as pure functions: `state = opt.init(params)`, `updates, state = opt.update(grads, state, params)`.

They follow PyTorch's rules to the letter, carry their state in the open under PyTorch's names, and change no input.
`base` holds what all share; each optimizer has a file of its own.
"""

from fnad.optim.adam import AdamState as AdamState
from fnad.optim.adam import adam as adam
from fnad.optim.adam import adamw as adamw
from fnad.optim.base import Optimizer as Optimizer
from fnad.optim.base import apply_updates as apply_updates
from fnad.optim.sgd import SGDState as SGDState
from fnad.optim.sgd import sgd as sgd
