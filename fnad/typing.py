"""Public type aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Array: TypeAlias = Any
"""A `numpy.ndarray`, a NumPy scalar, or a tracer that stands for one."""

ArrayLike: TypeAlias = Any
"""What NumPy accepts as an array: arrays, tracers, Python scalars, nested lists of them."""

PyTree: TypeAlias = Any
"""Nested dicts, lists, tuples, namedtuples, dataclasses and registered classes with arrays as leaves."""

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]
