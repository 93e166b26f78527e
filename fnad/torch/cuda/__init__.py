"""`torch.cuda`, of which there is nothing: what scripts ask before they decide for the CPU, and calls without effect."""

from __future__ import annotations

from typing import Any, NoReturn

from fnad.errors import UnknownNameError


def is_available() -> bool:
    """False: fnad runs on the CPU."""
    return False


def device_count() -> int:
    """0: fnad runs on the CPU."""
    return 0


def is_initialized() -> bool:
    return False


def manual_seed(seed: int) -> None:
    """Has no effect."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Has no effect."""


def synchronize(device: Any = None) -> None:
    """Has no effect."""


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(
        f"torch.cuda.{name} does not exist in fnad.torch: there is the CPU alone", fix="if torch.cuda.is_available(): ..."
    )
