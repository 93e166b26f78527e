"""`torch.nn.utils`: clipping of gradients, parameters as one vector, sequences of different lengths,
parameters that are functions of others."""

from typing import NoReturn

from fnad.errors import UnknownNameError
from fnad.torch.nn.utils import parametrizations as parametrizations
from fnad.torch.nn.utils import parametrize as parametrize
from fnad.torch.nn.utils import rnn as rnn
from fnad.torch.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from fnad.torch.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from fnad.torch.nn.utils.clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from fnad.torch.nn.utils.clipping import get_total_norm as get_total_norm
from fnad.torch.nn.utils.clipping import parameters_to_vector as parameters_to_vector
from fnad.torch.nn.utils.clipping import vector_to_parameters as vector_to_parameters


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    fix = f"torch.nn.utils.parametrizations.{name}" if name in ("weight_norm", "spectral_norm") else "docs/torch.md lists what there is"
    raise UnknownNameError(f"torch.nn.utils.{name} does not exist in fnad.torch", fix=fix)
