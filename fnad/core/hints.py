"""Names of other libraries, each with what to write here: attributes of arrays, and functions of the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import numpy as np

from fnad.errors import UnknownNameError, user_line

_OWN = "a traced value owns no memory: ask the plain array outside of the transform"
_PLAIN = "leave it out: arrays are plain NumPy arrays on the CPU, before and after the transform"
_SHAPES = "x.shape, x.ndim, x.size are attributes, without parentheses"

ATTRIBUTES = {
    "at": "fnad.at(x)[i].set(v), which takes traced and plain arrays",
    "backward": "fnad.grad(f)(x) gives the gradient of a function f; nothing is stored in x",
    "grad": "fnad.grad(f)(x) gives the gradient of a function f; nothing is stored in x",
    "grad_fn": "fnad.grad(f)(x) gives the gradient of a function f; fnad.make_graph(f)(x) shows what f does",
    "requires_grad": "fnad.grad(f, argnums=...) says what is differentiated; fnad.stop_gradient(x) keeps a value out of it",
    "requires_grad_": "fnad.grad(f, argnums=...) says what is differentiated; fnad.stop_gradient(x) keeps a value out of it",
    "detach": "fnad.stop_gradient(x)",
    "numpy": "x itself: it is an array for NumPy's functions",
    "cpu": _PLAIN,
    "cuda": _PLAIN,
    "device": _PLAIN,
    "block_until_ready": _PLAIN,
    "to": "x.astype(dtype); there are no devices",
    "type": "x.dtype, x.astype(dtype)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "half": "x.astype(np.float16)",
    "long": "x.astype(np.int64)",
    "int": "x.astype(np.int32)",
    "bool": "x.astype(bool)",
    "dim": "x.ndim",
    "numel": "x.size",
    "t": "x.T",
    "view": "x.reshape(shape), or x.astype(dtype)",
    "view_as": "x.reshape(y.shape)",
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "permute": "np.transpose(x, axes)",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, y.shape)",
    "contiguous": "x itself: memory layout is fnad's business",
    "clone": "x itself: no operation changes it in place",
    "mm": "x @ y",
    "bmm": "x @ y",
    "mv": "x @ y",
    "norm": "np.linalg.norm(x, axis=...)",
    "relu": "fnad.nn.functional.relu(x), or np.maximum(x, 0)",
    "sigmoid": "fnad.nn.functional.sigmoid(x)",
    "softmax": "fnad.nn.functional.softmax(x, axis)",
    "log_softmax": "fnad.nn.functional.log_softmax(x, axis)",
    "logsumexp": "fnad.nn.functional.logsumexp(x, axis)",
    "gather": "np.take_along_axis(x, index, axis)",
    "scatter": "fnad.at(x)[index].set(values)",
    "scatter_add": "fnad.at(x)[index].add(values)",
    "index_add": "fnad.at(x)[index].add(values)",
    "index_select": "np.take(x, index, axis)",
    "masked_fill": "np.where(mask, value, x)",
    "unbind": "list(x), or tuple(np.moveaxis(x, axis, 0))",
    "chunk": "np.array_split(x, n, axis)",
    "topk": "np.sort(x)[-k:]",
    "data": _OWN,
    "base": _OWN,
    "flags": _OWN,
    "strides": _OWN,
    "ctypes": _OWN,
}
"""Attributes that arrays of torch, JAX or NumPy have and traced ones lack."""

CALLED = {
    "size": f"x.shape, or x.shape[i]; {_SHAPES}",
    "ndim": f"x.ndim; {_SHAPES}",
    "shape": f"x.shape; {_SHAPES}",
    "T": "x.T, without parentheses",
    "mT": "x.mT, without parentheses",
}
"""Attributes that are methods elsewhere."""

NAMES = {
    "compile": "fnad.jit",
    "function": "fnad.jit",
    "vectorize": "fnad.vmap",
    "pmap": "fnad.vmap; large loops of a compiled function use all cores by themselves",
    "prange": "fnad.jit, whose large loops use all cores, with NumPy's operations on whole arrays; or fnad.vmap",
    "jacobian": "fnad.jacrev (few outputs) or fnad.jacfwd (few inputs)",
    "jac": "fnad.jacrev (few outputs) or fnad.jacfwd (few inputs)",
    "derivative": "fnad.grad",
    "gradient": "fnad.grad",
    "backward": "fnad.grad, which returns the gradient of a function",
    "elementwise_grad": "fnad.vmap(fnad.grad(f))",
    "egrad": "fnad.vmap(fnad.grad(f))",
    "grad_and_value": "fnad.value_and_grad, which returns the value first",
    "value_and_gradient": "fnad.value_and_grad",
    "make_vjp": "fnad.vjp",
    "make_jvp": "fnad.jvp",
    "pullback": "fnad.vjp",
    "hessian_vector_product": "fnad.hvp",
    "make_hvp": "fnad.hvp",
    "custom_gradient": "fnad.custom_vjp",
    "defvjp": "fnad.custom_vjp, or fnad.implements for a function of NumPy",
    "primitive": "fnad.custom_vjp, or fnad.implements for a function of NumPy",
    "no_grad": "fnad.stop_gradient(x); without a transform nothing is recorded",
    "detach": "fnad.stop_gradient",
    "remat": "fnad.checkpoint",
    "make_jaxpr": "fnad.make_graph",
    "lax": "fnad.scan, fnad.cond, fnad.while_loop, fnad.fori_loop",
    "for_loop": "fnad.fori_loop",
    "tree_map": "fnad.tree.map",
    "tree_util": "fnad.tree",
    "tree_leaves": "fnad.tree.leaves",
    "tree_flatten": "fnad.tree.flatten",
    "Tensor": "plain NumPy arrays: np.array(...)",
    "tensor": "plain NumPy arrays: np.array(...)",
    "Variable": "plain NumPy arrays: np.array(...)",
    "jnp": "NumPy itself: import numpy as np",
    "np": "NumPy itself: import numpy as np",
    "scatter": "fnad.at(x)[i].set(v)",
    "index_update": "fnad.at(x)[i].set(v)",
    "flow": "fnad.scan",
}
"""Functions of autograd, JAX, numba and torch, by what they mean here."""


OPTIM = {
    "clip": "clip_by_value",
    "clip_grad_norm_": "clip_by_global_norm",
    "clip_grad_value_": "clip_by_value",
    "multi_transform": "partition",
    "MultiSteps": "accumulate",
    "apply_if_finite": "skip_not_finite",
    "apply_every": "accumulate",
    "amsgrad": "adam(lr, amsgrad=True)",
    "nadamw": "nadam(lr, weight_decay=0.01, decoupled_weight_decay=True)",
    "scale_by_adam": "adam(lr), which includes the learning rate",
    "scale_by_learning_rate": "sgd(lr)",
    "scale": "sgd(lr), whose updates are -lr times the gradients",
    "freeze": "sgd(0.0) as a part of fnad.optim.partition, or gradients that are None",
    "trace": "sgd(lr, momentum)",
    "reduce_on_plateau": "schedules.reduce_lr_on_plateau",
    "AveragedModel": "swa, or fnad.optim.ema",
    "lr_scheduler": "schedules",
    "ReduceLROnPlateau": "schedules.reduce_lr_on_plateau",
    "cosine_decay_schedule": "schedules.cosine_annealing_lr",
    "exponential_decay": "schedules.exponential_lr",
    "linear_schedule": "schedules.linear_lr",
    "join_schedules": "schedules.sequential_lr",
    "piecewise_constant_schedule": "schedules.multi_step_lr",
    "polynomial_schedule": "schedules.polynomial_lr",
    "warmup_cosine_decay_schedule": "schedules.warmup_cosine",
}
"""Names of torch.optim and optax, by what stands in `fnad.optim` for them."""

RANDOM = {
    "seed": "key(seed), which functions take as their first argument",
    "default_rng": "key(seed), which functions take as their first argument",
    "manual_seed": "key(seed), which functions take as their first argument",
    "rand": "uniform(key, shape)",
    "randn": "normal(key, shape)",
    "random": "uniform(key, shape)",
    "standard_normal": "normal(key, shape)",
    "integers": "randint(key, shape, low, high)",
    "randperm": "permutation(key, n)",
    "shuffle": "permutation(key, x), a new array",
    "multinomial": "categorical(key, np.log(p), shape=(n,)), counted by np.bincount",
    "key_data": "key(seed) itself: keys are arrays of two uint64",
    "wrap_key_data": "key(seed): keys are arrays of two uint64",
    "clone": "split(key)",
}
"""Names of np.random, torch and jax.random, likewise."""


def missing_attribute(name: str) -> UnknownNameError:
    """The error for an attribute that traced values lack."""
    fix = ATTRIBUTES.get(name, "")
    if not fix and name.endswith("_") and not name.startswith("_"):
        known = callable(getattr(np, name[:-1], None))
        fix = f"x = {f'np.{name[:-1]}(x, ...)' if known else '...'}, a new array: nothing changes a traced value in place"
    elif not fix and callable(getattr(np, name, None)):
        fix = f"np.{name}(x)"
    return UnknownNameError(f"a traced value has no attribute {name!r}", got={"at": user_line()}, fix=fix)


def missing_name(name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that the package lacks."""
    near = difflib.get_close_matches(name, known, 1, 0.7)
    fix = NAMES.get(name) or (f"fnad.{near[0]}" if near else "")
    if not fix and callable(getattr(np, name, None)):
        fix = f"np.{name}: fnad differentiates and compiles NumPy's own functions"
    return UnknownNameError(f"module 'fnad' has no attribute {name!r}", fix=fix)


def missing_in(module: str, name: str, known: Iterable[str], hints: Mapping[str, str]) -> UnknownNameError:
    """The error for a name that a module of the package lacks: names are looked for as they are, and in the spelling of functions."""
    names = [k for k in known if not k.startswith("_")]
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().removesuffix("_")
    near = [k for k in names if k.replace("_", "") == spelled.replace("_", "")] or difflib.get_close_matches(spelled, names, 1, 0.7)
    found = hints.get(name) or (near[0] if near else "")
    return UnknownNameError(f"module '{module}' has no attribute {name!r}", fix=f"{module}.{found}" if found else "")
