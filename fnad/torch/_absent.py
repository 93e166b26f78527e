"""What `torch` has by name only: functions that are found elsewhere, and names that are absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import UnknownNameError
from fnad.torch import _factors, _joining, _special, _statistics
from fnad.torch._dtypes import absent_dtype, as_numpy, dtype_of, promote
from fnad.torch._tensor import Tensor, device, method
from fnad.torch.nn import functional

_MODULES = (_special, _statistics, _joining, _factors)
_OF_FUNCTIONAL = {
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "batch_norm", "bilinear",
    "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "ctc_loss", "dropout", "embedding", "embedding_bag",
    "feature_alpha_dropout", "group_norm", "gru_cell", "hardshrink", "hinge_embedding_loss", "instance_norm", "kl_div", "layer_norm",
    "lstm_cell", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "poisson_nll_loss", "prelu", "rms_norm", "rnn_relu_cell", "rnn_tanh_cell", "rrelu", "selu", "threshold",
    "triplet_margin_loss",
}  # fmt: skip
_DTYPES = ("bfloat16", "complex32", "float8_e4m3fn", "float8_e5m2", "qint8", "quint8", "qint32")


def found(name: str) -> Any:
    """A name of `torch` that its own file does not have.

    Raises:
        UnknownNameError: (an AttributeError) it does not exist.
    """
    for module in _MODULES:
        if name in module.__all__:
            return getattr(module, name)
    if name in _OF_FUNCTIONAL:
        return getattr(functional, name)
    if name in _HERE:
        return _HERE[name]
    if name in _DTYPES:
        raise absent_dtype(name)
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):
        return _changing(name)
    raise UnknownNameError(
        f"torch.{name} does not exist in fnad.torch",
        fix="compose it from other operations, or use NumPy on x.detach().numpy(); docs/torch.md lists what there is",
    )


def _changing(name: str) -> Callable[..., Any]:
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(input, name)(*args, **kwargs)

    call.__name__ = name
    return call


def finfo(type: Any = None) -> Any:
    """Limits of a floating-point dtype: `eps`, `max`, `min`, `tiny`, ..."""
    return np.finfo(as_numpy(type) if type is not None else np.float32)


def iinfo(type: Any) -> Any:
    """Limits of an integer dtype: `max`, `min`, `bits`."""
    return np.iinfo(as_numpy(type))


def is_complex(input: Any) -> bool:
    """Whether its entries are complex numbers."""
    return input.is_complex()


@method()
def is_nonzero(input: Any) -> bool:
    """Whether the only entry is not 0."""
    return bool(input)


@method()
def is_same_size(input: Any, other: Any) -> bool:
    """Whether two shapes are equal."""
    return input._data.shape == other._data.shape


@method()
def is_signed(input: Any) -> bool:
    """Whether its dtype has a sign."""
    return input.dtype.is_signed


def promote_types(type1: Any, type2: Any) -> Any:
    """The common dtype of two."""
    return dtype_of(promote(as_numpy(type1), as_numpy(type2)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether one dtype may be cast to another within its kind, or to a higher one."""
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    return rank[as_numpy(from_).kind] <= rank[as_numpy(to).kind]


def scalar_tensor(s: Any, **options: Any) -> Any:
    """A tensor without axes, of the default dtype."""
    return Tensor().new_tensor(s, **options)


def set_default_device(d: Any) -> None:
    """The CPU, always."""
    device(d)


def get_default_device() -> device:
    """The CPU."""
    return device("cpu")


def without_effect(*_: Any, **__: Any) -> None:
    """Has no effect."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: operations are deterministic."""
    return True


def get_float32_matmul_precision() -> str:
    return "highest"


_HERE: dict[str, Any] = {
    f.__name__: f
    for f in (
        finfo, iinfo, is_complex, is_nonzero, is_same_size, is_signed, promote_types, can_cast, scalar_tensor, set_default_device,
        get_default_device, are_deterministic_algorithms_enabled, get_float32_matmul_precision,
    )
}  # fmt: skip
for _name in ("set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always"):
    _HERE[_name] = without_effect

for _name in ("is_sparse", "is_quantized", "is_mps", "is_xla", "is_meta", "is_nested", "is_mkldnn", "is_vulkan", "is_xpu"):
    method(_name)(property(lambda self: False))
method("is_cpu")(property(lambda self: True))
method("layout")(property(lambda self: "strided"))
method("is_pinned", "is_shared", "is_inference", "is_conj", "is_neg")(lambda self: False)
