"""Dropout: entries, or whole channels, set to 0 by chance. The randomness comes from a key that is passed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import floating
from fnad.primitives.random import random_bits
from fnad.typing import Array, ArrayLike

_SATURATION = -1.7580993408473766  # -scale * alpha of selu, its limit for x -> -inf


def dropout(input: ArrayLike, p: float = 0.5, training: bool = True, *, key: ArrayLike | None = None) -> Array:
    """Entries set to 0 with probability p, the others divided by 1 - p.

    Args:
        input: Real array.
        p: The probability, a plain number.
        training: Whether anything is done at all.
        key: A key of `fnad.random`; needed where something is done.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ArgumentError: p is not in [0, 1], or there is no key.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.dropout(np.ones(6), 0.5, key=random.key(0))
        array([0., 0., 2., 0., 0., 0.])

    Reference: Srivastava et al., Dropout, 2014; `torch.nn.functional.dropout` with a key in place of a global state.
    """
    x = floating(input, "dropout")
    return _dropped("dropout", x, shape_of(x), p, training, key)


def dropout1d(input: ArrayLike, p: float = 0.5, training: bool = True, *, key: ArrayLike | None = None) -> Array:
    """Channels of (n, c, w) or (c, w) set to 0 with probability p, the others divided by 1 - p. As `dropout`.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.dropout1d(np.ones((4, 2)), 0.5, key=random.key(1))[:, 0]
        array([0., 0., 2., 2.])

    Reference: `torch.nn.functional.dropout1d`.
    """
    return _channels("dropout1d", 1, input, p, training, key)


def dropout2d(input: ArrayLike, p: float = 0.5, training: bool = True, *, key: ArrayLike | None = None) -> Array:
    """Channels of (n, c, h, w) or (c, h, w) set to 0 with probability p, the others divided by 1 - p. As `dropout`.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.dropout2d(np.ones((4, 2, 2)), 0.5, key=random.key(1))[:, 0, 0]
        array([0., 0., 2., 2.])

    Reference: `torch.nn.functional.dropout2d`; Tompson et al., Efficient Object Localization Using Convolutional Networks, 2015.
    """
    return _channels("dropout2d", 2, input, p, training, key)


def dropout3d(input: ArrayLike, p: float = 0.5, training: bool = True, *, key: ArrayLike | None = None) -> Array:
    """Channels of (n, c, d, h, w) or (c, d, h, w) set to 0 with probability p, the others divided by 1 - p. As `dropout`.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.dropout3d(np.ones((4, 1, 2, 2)), 0.5, key=random.key(1))[:, 0, 0, 0]
        array([0., 0., 2., 2.])

    Reference: `torch.nn.functional.dropout3d`.
    """
    return _channels("dropout3d", 3, input, p, training, key)


def alpha_dropout(input: ArrayLike, p: float = 0.5, training: bool = False, *, key: ArrayLike | None = None) -> Array:
    """Entries set to selu's lower limit with probability p, then all scaled and moved so that mean and variance stay.

    Args:
        input: Real array with mean 0 and variance 1.
        p: The probability, a plain number.
        training: Whether anything is done at all.
        key: A key of `fnad.random`; needed where something is done.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ArgumentError: p is not in [0, 1], or there is no key.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> x = random.normal(random.key(0), (10000,))
        >>> bool(abs(np.std(F.alpha_dropout(x, 0.3, True, key=random.key(1))) - 1) < 0.03)
        True

    Reference: Klambauer et al., Self-Normalizing Neural Networks, 2017; `torch.nn.functional.alpha_dropout`.
    """
    x = floating(input, "alpha_dropout")
    return _saturated("alpha_dropout", x, shape_of(x), p, training, key)


def feature_alpha_dropout(input: ArrayLike, p: float = 0.5, training: bool = False, *, key: ArrayLike | None = None) -> Array:
    """`alpha_dropout` of whole channels: of (n, c, ...).

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.feature_alpha_dropout(np.ones((1, 2, 3)), 0.0, True, key=random.key(0)).shape
        (1, 2, 3)

    Reference: `torch.nn.functional.feature_alpha_dropout`.
    """
    x = floating(input, "feature_alpha_dropout")
    shape = shape_of(x)
    if len(shape) < 2:
        raise ShapeError("feature_alpha_dropout: input (n, c, ...)", got={"input": aval_of(x)})
    return _saturated("feature_alpha_dropout", x, (*shape[:2], *(1,) * (len(shape) - 2)), p, training, key)


def _channels(name: str, rank: int, input: Any, p: float, training: bool, key: Any) -> Array:
    x = floating(input, name)
    shape = shape_of(x)
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: input (n, c, *size) or (c, *size) with {rank} last axes", got={"input": aval_of(x)})
    return _dropped(name, x, (*shape[: len(shape) - rank], *(1,) * rank), p, training, key)


def _kept(name: str, shape: tuple[int, ...], p: float, key: Any) -> Any:
    """True with probability 1 - p, to within 2**-32."""
    if key is None:
        raise ArgumentError(f"{name} needs a key where it trains", got={"key": None}, fix="pass key=fnad.random.key(seed)")
    return random_bits(key, shape=shape, bits=32) >= np.uint32(min(round(p * 2**32), 2**32 - 1))


def _checked(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p lies in [0, 1]", got={"p": p})


def _dropped(name: str, x: Any, shape: tuple[int, ...], p: float, training: bool, key: Any) -> Array:
    _checked(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return x * x.dtype.type(0)
    return np.where(_kept(name, shape, p, key), x * x.dtype.type(1 / (1 - p)), x.dtype.type(0))


def _saturated(name: str, x: Any, shape: tuple[int, ...], p: float, training: bool, key: Any) -> Array:
    _checked(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return x * x.dtype.type(0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SATURATION * _SATURATION))
    mixed = np.where(_kept(name, shape, p, key), x, x.dtype.type(_SATURATION))
    return mixed * x.dtype.type(scale) - x.dtype.type(scale * p * _SATURATION)
