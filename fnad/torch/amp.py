"""`torch.amp`: mixed precision, which there is on GPUs alone; scripts that switch it off, or ask for it on a GPU, run in full precision."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from fnad.errors import UnsupportedError


class autocast:
    """Everything inside keeps its dtype.

    Args:
        device_type: "cuda" is switched off with a warning, as in PyTorch without a GPU; on "cpu" it must not be enabled.
        dtype: Has no meaning here.
        enabled: Whether it is asked for.
        cache_enabled: Has no meaning here.

    Raises:
        UnsupportedError: it is asked for on the CPU, where PyTorch takes bfloat16, which NumPy lacks.

    Reference: `torch.autocast` of PyTorch 2.13.
    """

    def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if enabled and device_type == "cpu":
            raise UnsupportedError(
                "fnad.torch: torch.autocast on the CPU needs bfloat16, which NumPy lacks",
                fix='torch.autocast("cpu", enabled=False), or leave it out',
            )
        if enabled:
            warnings.warn(f"User provided device_type of {device_type!r}, but CUDA is not available. Disabling", UserWarning, stacklevel=2)

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped


class GradScaler:
    """A scaler of losses that is switched off, as PyTorch's is without a GPU: losses and gradients stay as they are.

    Args:
        device: Has no meaning here.
        args: Have no meaning here.
        enabled: Has no effect.
        kwargs: Have no meaning here.
    """

    def __init__(self, device: str = "cuda", *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        if enabled:
            warnings.warn("torch.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", UserWarning, stacklevel=2)

    def is_enabled(self) -> bool:
        return False

    def scale(self, outputs: Any) -> Any:
        """The losses themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Has no effect."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Has no effect."""

    def get_scale(self) -> float:
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Has no effect."""
