"""`torch.autograd`: gradients by the tape, and operations of one's own."""

from typing import NoReturn

from fnad.errors import UnknownNameError
from fnad.torch._mode import enable_grad as enable_grad
from fnad.torch._mode import inference_mode as inference_mode
from fnad.torch._mode import no_grad as no_grad
from fnad.torch._mode import set_grad_enabled as set_grad_enabled
from fnad.torch.autograd import functional as functional
from fnad.torch.autograd.checks import gradcheck as gradcheck
from fnad.torch.autograd.checks import gradgradcheck as gradgradcheck
from fnad.torch.autograd.gradients import Context as Context
from fnad.torch.autograd.gradients import Function as Function
from fnad.torch.autograd.gradients import RemovableHandle as RemovableHandle
from fnad.torch.autograd.gradients import Variable as Variable
from fnad.torch.autograd.gradients import backward as backward
from fnad.torch.autograd.gradients import grad as grad


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    hint = "fnad.config(debug_nans=True) finds the first nan" if "anomaly" in name else "docs/torch.md lists what there is"
    raise UnknownNameError(f"torch.autograd.{name} does not exist in fnad.torch", fix=hint)
