"""Steps of the optimizers, each in one pass over memory. All arrays are flat, contiguous and of one dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad._numba import kernel


@kernel
def sgd(grad: Any, param: Any, lr: Any, weight_decay: Any, maximize: Any, update: Any) -> None:
    """Gradient descent without momentum: `update = -lr d`, `d = grad + weight_decay param`.

    `param` is read only where `weight_decay` is not 0.
    """
    for i in range(grad.size):
        d = -grad[i] if maximize else grad[i]
        if weight_decay != 0:
            d += weight_decay * param[i]
        update[i] = -lr * d


@kernel
def sgd_momentum(
    grad: Any, param: Any, buffer: Any, lr: Any, momentum: Any, keep: Any, weight_decay: Any, nesterov: Any, maximize: Any, first: Any,
    update: Any, new_buffer: Any,
) -> None:  # fmt: skip
    """Gradient descent with momentum: `new_buffer = momentum buffer + keep d`, or `d` if this is the `first` step."""
    for i in range(grad.size):
        d = -grad[i] if maximize else grad[i]
        if weight_decay != 0:
            d += weight_decay * param[i]
        b = d if first else momentum * buffer[i] + keep * d
        new_buffer[i] = b
        update[i] = -lr * (d + momentum * b if nesterov else b)


@kernel
def adam(
    grad: Any, param: Any, avg: Any, avg_sq: Any, top: Any, step_size: Any, root: Any, share: Any, keep: Any, beta2: Any, share2: Any,
    eps: Any, decay: Any, decoupled: Any, maximize: Any, amsgrad: Any, near: Any, update: Any, new_avg: Any, new_avg_sq: Any, new_top: Any,
) -> None:  # fmt: skip
    """Adam: running means of `d = grad + decay param` and of its square, and a step along their quotient.

    `root` is the square root of the second bias correction, `share = 1 - beta1`, `keep = 1 - share`, `share2 = 1 - beta2`. The first
    mean is `avg + share (d - avg)` if `near`, else `d - keep (d - avg)`. `decoupled` decay goes into the step instead of `d`.
    `top` and `new_top` are used by `amsgrad` only.
    """
    for i in range(grad.size):
        d = -grad[i] if maximize else grad[i]
        if decay != 0 and not decoupled:
            d += decay * param[i]
        m = avg[i] + share * (d - avg[i]) if near else d - (d - avg[i]) * keep
        v = avg_sq[i] * beta2 + share2 * d * d
        new_avg[i] = m
        new_avg_sq[i] = v
        if amsgrad:
            v = v if v > top[i] or v != v else top[i]
            new_top[i] = v
        u = -step_size * m / (np.sqrt(v) / root + eps)
        update[i] = u - decay * param[i] if decay != 0 and decoupled else u
