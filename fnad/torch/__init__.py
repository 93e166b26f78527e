"""PyTorch's eager interface on fnad: `import fnad.torch as torch`.

    >>> import fnad.torch as torch
    >>> from fnad.torch import nn
    >>> model = nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loss = nn.functional.mse_loss(model(torch.ones(4, 2)), torch.zeros(4, 1))
    >>> loss.backward()
    >>> optimizer.step()

It holds no mathematics: operations are fnad's primitives, `backward()` drives the pullbacks of `fnad.vjp`, optimizers call `fnad.optim`.
Files: `_tensor` (the class), `_tape` and `_backward` (recording, and the walk back), `_views`, `_call` (how functions of arrays become
functions of tensors); `_operators`, `_reductions`, `_shapes`, `_indexing`, `_creation`, `_random`, `_linalg` (operations by subject);
`_special`, `_statistics`, `_joining`, `_factors` (those that fewer scripts use), `_absent` (the rest).
"""

from __future__ import annotations

import math as _math
from typing import Any as _Any

from fnad.torch import _absent as _absent
from fnad.torch import _format as _format  # registers how tensors are printed
from fnad.torch import amp as amp
from fnad.torch import autograd as autograd
from fnad.torch import backends as backends
from fnad.torch import cuda as cuda
from fnad.torch import fft as fft
from fnad.torch import func as func
from fnad.torch import linalg as linalg
from fnad.torch import nn as nn
from fnad.torch import optim as optim
from fnad.torch import utils as utils
from fnad.torch._compile import compile as compile
from fnad.torch._creation import BoolTensor as BoolTensor
from fnad.torch._creation import ByteTensor as ByteTensor
from fnad.torch._creation import DoubleTensor as DoubleTensor
from fnad.torch._creation import FloatTensor as FloatTensor
from fnad.torch._creation import IntTensor as IntTensor
from fnad.torch._creation import LongTensor as LongTensor
from fnad.torch._creation import arange as arange
from fnad.torch._creation import as_tensor as as_tensor
from fnad.torch._creation import asarray as asarray
from fnad.torch._creation import empty as empty
from fnad.torch._creation import empty_like as empty_like
from fnad.torch._creation import eye as eye
from fnad.torch._creation import from_dlpack as from_dlpack
from fnad.torch._creation import from_numpy as from_numpy
from fnad.torch._creation import full as full
from fnad.torch._creation import full_like as full_like
from fnad.torch._creation import linspace as linspace
from fnad.torch._creation import logspace as logspace
from fnad.torch._creation import ones as ones
from fnad.torch._creation import ones_like as ones_like
from fnad.torch._creation import tensor as tensor
from fnad.torch._creation import zeros as zeros
from fnad.torch._creation import zeros_like as zeros_like
from fnad.torch._dtypes import bool_ as bool_
from fnad.torch._dtypes import complex64 as complex64
from fnad.torch._dtypes import complex128 as complex128
from fnad.torch._dtypes import dtype as dtype
from fnad.torch._dtypes import float16 as float16
from fnad.torch._dtypes import float32 as float32
from fnad.torch._dtypes import float64 as float64
from fnad.torch._dtypes import get_default_dtype as get_default_dtype
from fnad.torch._dtypes import int8 as int8
from fnad.torch._dtypes import int16 as int16
from fnad.torch._dtypes import int32 as int32
from fnad.torch._dtypes import int64 as int64
from fnad.torch._dtypes import set_default_dtype as set_default_dtype
from fnad.torch._dtypes import uint8 as uint8
from fnad.torch._dtypes import uint16 as uint16
from fnad.torch._dtypes import uint32 as uint32
from fnad.torch._dtypes import uint64 as uint64
from fnad.torch._indexing import argwhere as argwhere
from fnad.torch._indexing import gather as gather
from fnad.torch._indexing import index_add as index_add
from fnad.torch._indexing import index_select as index_select
from fnad.torch._indexing import masked_fill as masked_fill
from fnad.torch._indexing import masked_select as masked_select
from fnad.torch._indexing import nonzero as nonzero
from fnad.torch._indexing import scatter as scatter
from fnad.torch._indexing import scatter_add as scatter_add
from fnad.torch._indexing import take as take
from fnad.torch._indexing import take_along_dim as take_along_dim
from fnad.torch._indexing import where as where
from fnad.torch._linalg import addmm as addmm
from fnad.torch._linalg import baddbmm as baddbmm
from fnad.torch._linalg import bmm as bmm
from fnad.torch._linalg import cholesky as cholesky
from fnad.torch._linalg import cross as cross
from fnad.torch._linalg import det as det
from fnad.torch._linalg import dist as dist
from fnad.torch._linalg import dot as dot
from fnad.torch._linalg import einsum as einsum
from fnad.torch._linalg import inv as inv
from fnad.torch._linalg import kron as kron
from fnad.torch._linalg import matmul as matmul
from fnad.torch._linalg import matrix_power as matrix_power
from fnad.torch._linalg import mm as mm
from fnad.torch._linalg import mv as mv
from fnad.torch._linalg import outer as outer
from fnad.torch._linalg import slogdet as slogdet
from fnad.torch._linalg import tensordot as tensordot
from fnad.torch._linalg import trace as trace
from fnad.torch._mode import enable_grad as enable_grad
from fnad.torch._mode import inference_mode as inference_mode
from fnad.torch._mode import is_grad_enabled as is_grad_enabled
from fnad.torch._mode import is_inference_mode_enabled as is_inference_mode_enabled
from fnad.torch._mode import no_grad as no_grad
from fnad.torch._mode import set_grad_enabled as set_grad_enabled
from fnad.torch._operators import abs as abs
from fnad.torch._operators import acos as acos
from fnad.torch._operators import acosh as acosh
from fnad.torch._operators import add as add
from fnad.torch._operators import addcdiv as addcdiv
from fnad.torch._operators import addcmul as addcmul
from fnad.torch._operators import allclose as allclose
from fnad.torch._operators import asin as asin
from fnad.torch._operators import asinh as asinh
from fnad.torch._operators import atan as atan
from fnad.torch._operators import atan2 as atan2
from fnad.torch._operators import atanh as atanh
from fnad.torch._operators import bitwise_and as bitwise_and
from fnad.torch._operators import bitwise_left_shift as bitwise_left_shift
from fnad.torch._operators import bitwise_not as bitwise_not
from fnad.torch._operators import bitwise_or as bitwise_or
from fnad.torch._operators import bitwise_right_shift as bitwise_right_shift
from fnad.torch._operators import bitwise_xor as bitwise_xor
from fnad.torch._operators import ceil as ceil
from fnad.torch._operators import clamp as clamp
from fnad.torch._operators import clamp_max as clamp_max
from fnad.torch._operators import clamp_min as clamp_min
from fnad.torch._operators import copysign as copysign
from fnad.torch._operators import cos as cos
from fnad.torch._operators import cosh as cosh
from fnad.torch._operators import div as div
from fnad.torch._operators import eq as eq
from fnad.torch._operators import equal as equal
from fnad.torch._operators import exp as exp
from fnad.torch._operators import exp2 as exp2
from fnad.torch._operators import expm1 as expm1
from fnad.torch._operators import floor as floor
from fnad.torch._operators import floor_divide as floor_divide
from fnad.torch._operators import fmax as fmax
from fnad.torch._operators import fmin as fmin
from fnad.torch._operators import fmod as fmod
from fnad.torch._operators import ge as ge
from fnad.torch._operators import gt as gt
from fnad.torch._operators import hypot as hypot
from fnad.torch._operators import isclose as isclose
from fnad.torch._operators import isfinite as isfinite
from fnad.torch._operators import isinf as isinf
from fnad.torch._operators import isnan as isnan
from fnad.torch._operators import le as le
from fnad.torch._operators import lerp as lerp
from fnad.torch._operators import log as log
from fnad.torch._operators import log1p as log1p
from fnad.torch._operators import log2 as log2
from fnad.torch._operators import log10 as log10
from fnad.torch._operators import logaddexp as logaddexp
from fnad.torch._operators import logical_and as logical_and
from fnad.torch._operators import logical_not as logical_not
from fnad.torch._operators import logical_or as logical_or
from fnad.torch._operators import logical_xor as logical_xor
from fnad.torch._operators import logit as logit
from fnad.torch._operators import lt as lt
from fnad.torch._operators import maximum as maximum
from fnad.torch._operators import minimum as minimum
from fnad.torch._operators import mul as mul
from fnad.torch._operators import nan_to_num as nan_to_num
from fnad.torch._operators import ne as ne
from fnad.torch._operators import neg as neg
from fnad.torch._operators import pow as pow
from fnad.torch._operators import reciprocal as reciprocal
from fnad.torch._operators import relu as relu
from fnad.torch._operators import remainder as remainder
from fnad.torch._operators import round as round
from fnad.torch._operators import rsqrt as rsqrt
from fnad.torch._operators import rsub as rsub
from fnad.torch._operators import sigmoid as sigmoid
from fnad.torch._operators import sign as sign
from fnad.torch._operators import signbit as signbit
from fnad.torch._operators import sin as sin
from fnad.torch._operators import sinh as sinh
from fnad.torch._operators import sqrt as sqrt
from fnad.torch._operators import square as square
from fnad.torch._operators import sub as sub
from fnad.torch._operators import tan as tan
from fnad.torch._operators import tanh as tanh
from fnad.torch._operators import true_divide as true_divide
from fnad.torch._operators import trunc as trunc
from fnad.torch._random import Generator as Generator
from fnad.torch._random import bernoulli as bernoulli
from fnad.torch._random import default_generator as default_generator
from fnad.torch._random import get_rng_state as get_rng_state
from fnad.torch._random import initial_seed as initial_seed
from fnad.torch._random import manual_seed as manual_seed
from fnad.torch._random import multinomial as multinomial
from fnad.torch._random import normal as normal
from fnad.torch._random import rand as rand
from fnad.torch._random import rand_like as rand_like
from fnad.torch._random import randint as randint
from fnad.torch._random import randint_like as randint_like
from fnad.torch._random import randn as randn
from fnad.torch._random import randn_like as randn_like
from fnad.torch._random import randperm as randperm
from fnad.torch._random import seed as seed
from fnad.torch._random import set_rng_state as set_rng_state
from fnad.torch._reductions import all as all
from fnad.torch._reductions import amax as amax
from fnad.torch._reductions import amin as amin
from fnad.torch._reductions import any as any
from fnad.torch._reductions import argmax as argmax
from fnad.torch._reductions import argmin as argmin
from fnad.torch._reductions import argsort as argsort
from fnad.torch._reductions import bincount as bincount
from fnad.torch._reductions import count_nonzero as count_nonzero
from fnad.torch._reductions import cumprod as cumprod
from fnad.torch._reductions import cumsum as cumsum
from fnad.torch._reductions import kthvalue as kthvalue
from fnad.torch._reductions import logsumexp as logsumexp
from fnad.torch._reductions import max as max
from fnad.torch._reductions import mean as mean
from fnad.torch._reductions import median as median
from fnad.torch._reductions import min as min
from fnad.torch._reductions import nanmean as nanmean
from fnad.torch._reductions import nansum as nansum
from fnad.torch._reductions import norm as norm
from fnad.torch._reductions import prod as prod
from fnad.torch._reductions import searchsorted as searchsorted
from fnad.torch._reductions import sort as sort
from fnad.torch._reductions import std as std
from fnad.torch._reductions import std_mean as std_mean
from fnad.torch._reductions import sum as sum
from fnad.torch._reductions import topk as topk
from fnad.torch._reductions import unique as unique
from fnad.torch._reductions import var as var
from fnad.torch._reductions import var_mean as var_mean
from fnad.torch._shapes import atleast_1d as atleast_1d
from fnad.torch._shapes import broadcast_shapes as broadcast_shapes
from fnad.torch._shapes import broadcast_tensors as broadcast_tensors
from fnad.torch._shapes import broadcast_to as broadcast_to
from fnad.torch._shapes import cat as cat
from fnad.torch._shapes import chunk as chunk
from fnad.torch._shapes import clone as clone
from fnad.torch._shapes import diag as diag
from fnad.torch._shapes import diagonal as diagonal
from fnad.torch._shapes import expand as expand
from fnad.torch._shapes import flatten as flatten
from fnad.torch._shapes import flip as flip
from fnad.torch._shapes import hstack as hstack
from fnad.torch._shapes import meshgrid as meshgrid
from fnad.torch._shapes import movedim as movedim
from fnad.torch._shapes import narrow as narrow
from fnad.torch._shapes import permute as permute
from fnad.torch._shapes import ravel as ravel
from fnad.torch._shapes import repeat_interleave as repeat_interleave
from fnad.torch._shapes import reshape as reshape
from fnad.torch._shapes import roll as roll
from fnad.torch._shapes import select as select
from fnad.torch._shapes import split as split
from fnad.torch._shapes import squeeze as squeeze
from fnad.torch._shapes import stack as stack
from fnad.torch._shapes import t as t
from fnad.torch._shapes import tile as tile
from fnad.torch._shapes import transpose as transpose
from fnad.torch._shapes import tril as tril
from fnad.torch._shapes import triu as triu
from fnad.torch._shapes import unbind as unbind
from fnad.torch._shapes import unflatten as unflatten
from fnad.torch._shapes import unsqueeze as unsqueeze
from fnad.torch._shapes import vstack as vstack
from fnad.torch._tensor import Size as Size
from fnad.torch._tensor import Tensor as Tensor
from fnad.torch._tensor import device as device
from fnad.torch.amp import autocast as autocast
from fnad.torch.func import pure as pure
from fnad.torch.func import vmap as vmap
from fnad.torch.serialization import load as load
from fnad.torch.serialization import save as save

bool = bool_
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
absolute = abs
arccos = acos
arcsin = asin
arctan = atan
arctan2 = atan2
clip = clamp
divide = div
multiply = mul
subtract = sub
negative = neg
greater_equal = ge
greater = gt
less_equal = le
less = lt
not_equal = ne
concat = cat
concatenate = cat
moveaxis = movedim
swapaxes = transpose
inverse = inv
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan
newaxis = None
strided = "strided"
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
__version__ = "2.13.0+fnad"


def is_tensor(x: _Any) -> _Any:
    """Whether it is a tensor."""
    return isinstance(x, Tensor)


def is_floating_point(input: _Any) -> _Any:
    """Whether its entries are floating-point numbers."""
    return input.is_floating_point()


def numel(input: _Any) -> _Any:
    """How many entries it has."""
    return input.numel()


def detach(input: _Any) -> _Any:
    """See `Tensor.detach`."""
    return input.detach()


def result_type(a: _Any, b: _Any) -> _Any:
    """The dtype of the result of an operation on both."""
    return add(a if is_tensor(a) else tensor(a), b).dtype


def softmax(input: _Any, dim: _Any, dtype: _Any = None) -> _Any:
    """See `nn.functional.softmax`."""
    return nn.functional.softmax(input, dim, dtype=dtype)


def log_softmax(input: _Any, dim: _Any, dtype: _Any = None) -> _Any:
    """See `nn.functional.log_softmax`."""
    return nn.functional.log_softmax(input, dim, dtype=dtype)


def set_printoptions(**_: _Any) -> None:
    """Has no effect."""


def get_num_threads() -> _Any:
    """How many threads operations use."""
    return 1


def set_num_threads(n: _Any) -> None:
    """Has no effect: see `NUMBA_NUM_THREADS`."""


def use_deterministic_algorithms(mode: _Any, **_: _Any) -> None:
    """Has no effect: operations are deterministic."""


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'fnad.torch' has no attribute {name!r}")
    return _absent.found(name)
