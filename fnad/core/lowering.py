"""The words in which a primitive tells the compiler how to compute it.

`Scalar` and `Reduce` join the loops around them, `View` only changes where a value is read, `Call` names a kernel behind a
pointer (BLAS), `Native` a function in machine code, `Repeat`, `While` and `Branch` hold graphs. A primitive without a `lower`
rule runs as a host call, between native parts or out of a native loop or branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Scalar(NamedTuple):
    """One expression per element of the broadcast operands.

    `name` names the expression in `kernels/expressions.py` or `kernels/scalar.py`; it receives one expression per operand,
    already of the dtypes `operands`. `baked` are positions of operands whose literals become part of the code (exponents).
    """

    name: str
    operands: tuple[np.dtype[Any], ...]
    baked: tuple[int, ...] = ()


class Reduce(NamedTuple):
    """Combine the entries along `axis` with `combine` ("add", "multiply", "maximum", "minimum"), beginning with `start`."""

    combine: str
    start: float
    axis: tuple[int, ...]


class View(NamedTuple):
    """The same entries elsewhere: `index(where, number)` answers which entry of the operand an entry of the result is.

    `where` holds one index expression per axis of the result; `number(n)` makes an expression of a size or offset.
    `alias` marks a view that keeps the order of all entries in memory (a reshape); such a one may have no `index`.
    `later` says that what is computed from it must not be moved before what has been computed when it is met.
    """

    index: Callable[[Sequence[Any], Callable[[int], Any]], list[Any]] | None  # type: ignore[assignment]
    alias: bool = False
    later: bool = False


class Iota(NamedTuple):
    """The number of each entry along one axis of the result; of the operand only the shape counts."""

    axis: int


class Call(NamedTuple):
    """A matrix product: `kernel` is "gemm" (BLAS) or "loops".

    `guard` says for each operand whether its zeros win over entries of the other one that are not finite.
    """

    kernel: str
    guard: tuple[bool, bool] = (False, False)


class Native(NamedTuple):
    """A native function `status(addresses, sizes)`: `address()` compiles it if need be and says where it lies.

    `addresses` is a vector with those of all operands and results, C-contiguous in memory, `sizes` one with the sizes of all their
    axes. It computes without Python. Where the status is not 0 the primitive's `impl` is called, which raises.
    """

    address: Callable[[], int]


class Gather(NamedTuple):
    """Entries of operand 0 at index arrays (operands 1, 2, ...) on consecutive axes from `axis` on."""

    axis: int


class Place(NamedTuple):
    """An array made of parts: operand `k` goes where `index(where, number)` says, entry by entry.

    `base` is the operand that the result is a copy of before; without one, what no part covers is 0. `combine` says how
    entries that go to one place are combined with what is there; None means that none do.
    """

    parts: tuple[tuple[int, Callable[[Sequence[Any], Callable[[int], Any]], list[Any]]], ...]
    base: int | None = None
    covered: bool = False
    combine: str | None = None


class Scatter(NamedTuple):
    """Values (the operand before the index arrays) put at index arrays on consecutive axes from `axis` on.

    `base` says whether operand 0 is what the result is a copy of before; otherwise it begins with 0. `combine` None means
    that later values replace earlier ones.
    """

    axis: int
    base: bool
    combine: str | None


class Scan(NamedTuple):
    """Running combination along one axis."""

    combine: str
    start: float
    axis: int
    reverse: bool


class Repeat(NamedTuple):
    """A loop with a carry: `body` maps (constants, carry, entries of this step) to (carry, results of this step).

    The first `constants` operands stay, the next `carry` are the initial carry, the others are taken apart along axis 0.
    """

    body: Any
    constants: int
    carry: int
    length: int
    reverse: bool

    @property
    def graphs(self) -> tuple[Any, ...]:
        return (self.body,)

    @property
    def first(self) -> int:
        """The position of the carry among the operands."""
        return self.constants


class While(NamedTuple):
    """A loop that goes on while `test` holds, which maps (its constants, carry) to a bool; `body` maps (its constants, carry) to carry.

    The operands are `test_constants` constants of the test, `body_constants` of the body, and `carry` initial values.
    """

    test: Any
    body: Any
    test_constants: int
    body_constants: int
    carry: int

    @property
    def graphs(self) -> tuple[Any, ...]:
        return (self.test, self.body)

    @property
    def first(self) -> int:
        """The position of the carry among the operands."""
        return self.test_constants + self.body_constants


class Branch(NamedTuple):
    """One of several graphs of operands 1, 2, ..., chosen by operand 0: a bool (False is graph 0) or a number in range."""

    graphs: tuple[Any, ...]
