"""What the declarations of SciPy's ufuncs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core import dispatch
from fnad.errors import UnsupportedError


def no_slope(name: str, argument: str) -> Callable[[], Any]:
    """The slope by an argument for which there is no rule: asking for it is an error, never a silent zero."""

    def refuse() -> Any:
        raise UnsupportedError(
            f"scipy.special.{name} has no derivative with respect to {argument}",
            fix=f"pass {argument} as a plain value, or fnad.stop_gradient({argument}) if it is traced",
        )

    return refuse


def weak(ufunc: np.ufunc, *args: Any) -> Any:
    """A ufunc called through its primitive, which returns a Python number for Python numbers, so that float32 stays float32."""
    return dispatch.ROWS[ufunc](*args)


def log_power(x: Any, y: Any) -> Any:
    """log(x**y), in the dtype of x for a Python number y."""
    return y * np.log(np.where(np.equal(y, 0), 1, x))
