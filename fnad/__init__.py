"""fnad differentiates plain NumPy code on the CPU.

    >>> import numpy as np, fnad
    >>> fnad.grad(lambda x: np.sum(np.sin(x)))(np.array([0.0, 1.0]))
    array([1.        , 0.54030231])

Functions take and return plain arrays, in pytrees. Submodules: `fnad.debug`, `fnad.nn`, `fnad.optim`, `fnad.random`, `fnad.scipy`,
`fnad.testing`, `fnad.torch` (imported on first use), `fnad.tree`, `fnad.errors`, `fnad.typing`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fnad import errors as errors
from fnad import numpy as numpy  # importing it registers what NumPy functions mean for tracers
from fnad import tree as tree
from fnad import typing as typing
from fnad._config import config as config
from fnad._version import VERSION
from fnad.core.dispatch import implements as implements
from fnad.core.graph import eval_shape as eval_shape
from fnad.core.graph import make_graph as make_graph
from fnad.jit import disable_jit as disable_jit
from fnad.jit import jit as jit
from fnad.numpy.at import at as at
from fnad.transforms.checkpoint import checkpoint as checkpoint
from fnad.transforms.custom import custom_jvp as custom_jvp
from fnad.transforms.custom import custom_vjp as custom_vjp
from fnad.transforms.jacobian import hessian as hessian
from fnad.transforms.jacobian import hvp as hvp
from fnad.transforms.jacobian import jacfwd as jacfwd
from fnad.transforms.jacobian import jacrev as jacrev
from fnad.transforms.jvp import jvp as jvp
from fnad.transforms.linearize import linearize as linearize
from fnad.transforms.stop import stop_gradient as stop_gradient
from fnad.transforms.vjp import grad as grad
from fnad.transforms.vjp import value_and_grad as value_and_grad
from fnad.transforms.vjp import vjp as vjp
from fnad.transforms.vmap import vmap as vmap

if TYPE_CHECKING:
    from fnad import debug as debug
    from fnad import nn as nn
    from fnad import optim as optim
    from fnad import random as random
    from fnad import scipy as scipy
    from fnad import testing as testing
    from fnad import torch as torch
    from fnad.caching import cache_info as cache_info
    from fnad.caching import clear_cache as clear_cache
    from fnad.checkpoints import load as load
    from fnad.checkpoints import save as save
    from fnad.control.callback import pure_callback as pure_callback
    from fnad.control.cond import cond as cond
    from fnad.control.cond import switch as switch
    from fnad.control.scan import associative_scan as associative_scan
    from fnad.control.scan import map as map
    from fnad.control.scan import scan as scan
    from fnad.control.while_loop import fori_loop as fori_loop
    from fnad.control.while_loop import while_loop as while_loop
    from fnad.explanation import explain as explain
    from fnad.loops.derivatives import register_derivative as register_derivative
    from fnad.loops.njit import njit as njit
    from fnad.profiling import profile as profile

__version__ = VERSION
_LAZY = ("debug", "nn", "optim", "random", "scipy", "testing", "torch")
_FUNCTIONS = {
    "associative_scan": "control.scan",
    "cache_info": "caching",
    "clear_cache": "caching",
    "cond": "control.cond",
    "explain": "explanation",
    "fori_loop": "control.while_loop",
    "load": "checkpoints",
    "map": "control.scan",
    "njit": "loops.njit",
    "profile": "profiling",
    "pure_callback": "control.callback",
    "register_derivative": "loops.derivatives",
    "save": "checkpoints",
    "scan": "control.scan",
    "switch": "control.cond",
    "while_loop": "control.while_loop",
}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        globals()[name] = found = getattr(importlib.import_module(f"fnad.{_FUNCTIONS[name]}"), name)
        return found
    if name in _LAZY:
        return importlib.import_module(f"fnad.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module 'fnad' has no attribute {name!r}")
    raise importlib.import_module("fnad.core.hints").missing_name(name, __dir__())


def __dir__() -> list[str]:
    hidden = {
        "Any",
        "TYPE_CHECKING",
        "importlib",
        "caching",
        "checkpoints",
        "core",
        "explanation",
        "kernels",
        "loops",
        "primitives",
        "profiling",
        "transforms",
    }
    return sorted(name for name in {*globals(), *_LAZY, *_FUNCTIONS} - hidden if not name.startswith("_") or name.endswith("__"))
