"""Steps of the optimizers, each in one pass over memory. All arrays are flat, contiguous and of one dtype."""

from __future__ import annotations

from typing import Any

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
