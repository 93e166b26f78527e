"""Comparing pytrees of arrays: where they differ, by how much, and how much was allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.errors import GradientError
from fnad.typing import PyTree


class Tolerance(NamedTuple):
    """Two values agree if `|got - want| <= atol + rtol * |want|`."""

    atol: float
    rtol: float


_EQUAL = {2: Tolerance(1e-2, 1e-2), 4: Tolerance(1e-5, 1e-5), 8: Tolerance(1e-10, 1e-10)}
_NUMERIC = {2: Tolerance(1e-1, 1e-1), 4: Tolerance(1e-3, 1e-3), 8: Tolerance(1e-6, 1e-6)}


def tolerance(dtypes: Iterable[Any], atol: float | None = None, rtol: float | None = None, *, numeric: bool = False) -> Tolerance:
    """The tolerances for values of the given dtypes: those of the coarsest one, unless given.

    Args:
        dtypes: Integer and boolean ones count as exact.
        atol: Takes the place of the absolute tolerance.
        rtol: Takes the place of the relative tolerance.
        numeric: Whether one of the values comes from finite differences, which are less precise.

    >>> tolerance([np.float64]), tolerance([np.float64, np.complex64])
    (Tolerance(atol=1e-10, rtol=1e-10), Tolerance(atol=1e-05, rtol=1e-05))
    """
    widths = [min(real_dtype(d).itemsize, 8) for d in map(np.dtype, dtypes) if d.kind in "fc"]
    found = (_NUMERIC if numeric else _EQUAL)[min(widths, default=8)]
    return Tolerance(found.atol if atol is None else atol, found.rtol if rtol is None else rtol)


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the real part."""
    return np.zeros((), dtype).real.dtype


@dataclass(frozen=True, slots=True)
class Difference:
    """The worst entry of two arrays that do not agree, measured against what was allowed there."""

    position: tuple[int, ...]
    got: Any
    want: Any
    allowed: Tolerance
    outside: int
    entries: int

    def report(self, names: tuple[str, str]) -> dict[str, str]:
        """Both values, both errors next to both tolerances, and how many entries are affected: lines of an error message."""
        with np.errstate(all="ignore"):
            absolute = abs(complex(self.got) - complex(self.want))
            relative = np.divide(absolute, abs(self.want))
        return {
            names[0]: str(self.got),
            names[1]: str(self.want),
            "absolute error": f"{absolute:.3g} (atol {self.allowed.atol:.3g})",
            "relative error": f"{relative:.3g} (rtol {self.allowed.rtol:.3g})",
            "entries outside the tolerances": f"{self.outside} of {self.entries}",
        }


def difference(got: Any, want: Any, allowed: Tolerance, scale: Any = 0.0) -> Difference | None:
    """The worst entry at which two arrays of one shape disagree, or None.

    Args:
        got: An array, NumPy scalar or Python number.
        want: The same, of equal shape. nan agrees with nan, an infinity with the same infinity.
        allowed: The tolerances.
        scale: Magnitude of what was summed up into `want`, where rounding is relative to that rather than to the sum.
    """
    got, want = np.asarray(got), np.asarray(want)
    with np.errstate(all="ignore"):
        if got.dtype.kind not in "fc" and want.dtype.kind not in "fc":
            bad = got != want
            excess = bad.astype(float)
        else:
            wide = np.result_type(got, want, np.float64)
            a, b = got.astype(wide), want.astype(wide)
            excess = abs(a - b) / (allowed.atol + allowed.rtol * np.maximum(abs(b), scale))
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            bad = ~same & ~(excess <= 1)
            excess = np.where(bad, np.where(np.isfinite(excess), excess, np.inf), -1.0)
    if not bad.any():
        return None
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), bad.shape))
    return Difference(position, got[position], want[position], allowed, int(bad.sum()), bad.size)


def at(path: str, position: tuple[int, ...]) -> str:
    """A leaf's path and a position in it, as one would write it: `['w'][0, 2]`."""
    return path + (f"[{', '.join(map(str, position))}]" if position else "")


def assert_trees_close(
    got: PyTree,
    want: PyTree,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    check_dtype: bool = True,
    what: str = "the results",
    names: tuple[str, str] = ("got", "want"),
) -> None:
    """Require two pytrees to have one structure, and leaves of equal shape, dtype and, within tolerances, values.

    Args:
        got: A pytree of arrays and numbers; other leaves are compared with `==`.
        want: The pytree it must agree with.
        atol: Absolute tolerance. The default depends on the dtype: 1e-10 for float64, 1e-5 for float32, 1e-2 for float16.
        rtol: Relative tolerance; defaults likewise.
        check_dtype: Whether dtypes must be equal too.
        what: What is compared, for the error.
        names: What the two are called in the error.

    Raises:
        GradientError: they differ. The message names the leaf's path and the position of the worst entry, and shows both
            values, both errors and both tolerances.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.testing.assert_trees_close({"w": np.ones(3)}, {"w": np.ones(3) + 1e-13})
        >>> fnad.testing.assert_trees_close({"w": np.array([1.0, 2.0])}, {"w": np.array([1.0, 2.5])})
        Traceback (most recent call last):
            ...
        fnad.errors.GradientError: the results differ
          at: ['w'][1]
          got: 2.0
          want: 2.5
          absolute error: 0.5 (atol 1e-10)
          relative error: 0.2 (rtol 1e-10)
          entries outside the tolerances: 1 of 2
    """
    got_leaves, got_spec = tree.flatten(got)
    want_leaves, want_spec = tree.flatten(want)
    if got_spec != want_spec:
        path, mine, theirs = tree.first_difference(got_spec, want_spec)
        raise GradientError(f"{what} differ in structure", got={"at": path or "the root", names[0]: mine, names[1]: theirs})
    for path, a, b in zip(tree.paths(got_spec), got_leaves, want_leaves, strict=True):
        if not (_numeric(a) and _numeric(b)):
            if not (a is b or a == b):
                raise GradientError(f"{what} differ", got={"at": path or "the root", names[0]: repr(a), names[1]: repr(b)})
            continue
        found = leaf_difference(a, b, atol, rtol, check_dtype, names)
        if found is not None:
            where, lines = found
            raise GradientError(f"{what} differ", got={"at": path + where or "the root", **lines})


def leaf_difference(
    got: Any, want: Any, atol: float | None, rtol: float | None, check_dtype: bool, names: tuple[str, str]
) -> tuple[str, Mapping[str, str]] | None:
    """Where two leaves differ, in shape, dtype or value, and the lines that say how; None if they agree."""
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape or (check_dtype and a.dtype != b.dtype):
        return "", {names[0]: f"{a.dtype}{list(a.shape)}", names[1]: f"{b.dtype}{list(b.shape)}"}
    found = difference(a, b, tolerance((a.dtype, b.dtype), atol, rtol))
    return None if found is None else (at("", found.position), found.report(names))


def _numeric(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic | bool | int | float | complex) and np.asarray(x).dtype.kind in "biufc"
