"""Products and `torch.linalg`."""

from __future__ import annotations

from typing import Any, NamedTuple

from fnad.numpy import algebra, linalg
from fnad.numpy import einsum as einsum_module
from fnad.primitives.products import matmul as matmul_primitive
from fnad.torch._call import cast, lift, prim
from fnad.torch._dtypes import common
from fnad.torch._reductions import norm
from fnad.torch._tensor import Tensor, method

_matmul = lift(algebra.matmul, "matmul")


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Operands of a product: their dtypes must be equal."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise TypeError(f"matmul(): both operands must be tensors, but got {type(a).__name__} and {type(b).__name__}")
    if a._data.dtype != b._data.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    return a, b


@method("matmul", "__matmul__")
def matmul(input: Any, other: Any) -> Any:
    """The matrix product; leading axes broadcast, vectors give sums of products."""
    a, b = _pair(input, other)
    try:
        if a._data.ndim == 2 == b._data.ndim:
            return prim(matmul_primitive, a, b)
        return _matmul(a, b)
    except ValueError as e:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({tuple(a.shape)} and {tuple(b.shape)})") from e


@method("__rmatmul__")
def _rmatmul(self: Any, other: Any) -> Any:
    return NotImplemented


def _need(name: str, *tensors: tuple[Any, int]) -> None:
    for x, n in tensors:
        if x._data.ndim != n:
            raise RuntimeError(f"{name}: expected a {n}D tensor, but got one of shape {tuple(x.shape)}")


@method()
def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices."""
    _need("mm", (input, 2), (mat2, 2))
    return matmul(input, mat2)


@method()
def bmm(input: Any, mat2: Any) -> Any:
    """The products of two stacks of matrices."""
    _need("bmm", (input, 3), (mat2, 3))
    return matmul(input, mat2)


@method()
def mv(input: Any, vec: Any) -> Any:
    """The product of a matrix and a vector."""
    _need("mv", (input, 2), (vec, 1))
    return matmul(input, vec)


@method()
def dot(input: Any, tensor: Any) -> Any:
    """The sum of products of two vectors."""
    _need("dot", (input, 1), (tensor, 1))
    return matmul(input, tensor)


@method()
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2)."""
    product = matmul(mat1, mat2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


@method()
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (batch1 @ batch2)."""
    return addmm(input, batch1, batch2, beta=beta, alpha=alpha)


outer = lift(algebra.outer)
method("outer")(outer)
trace = lift(algebra.trace)
method("trace")(trace)
kron = lift(algebra.kron)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Sums of products over several axes."""
    return lift(algebra.tensordot)(a, b, dims)


def cross(input: Any, other: Any, dim: int = -1) -> Any:
    """The cross product."""
    return lift(algebra.cross)(input, other, axis=dim)


_einsum = lift(einsum_module.einsum)


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products, as the equation says."""
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    dtype = common([x._data for x in tensors], [])
    return _einsum(equation.replace(" ", ""), *[cast(x, dtype) for x in tensors])


class Eigh(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class Slogdet(NamedTuple):
    sign: Any
    logabsdet: Any


inv, solve, det = lift(linalg.inv), lift(linalg.solve), lift(linalg.det)
cholesky, matrix_power, multi_dot = lift(linalg.cholesky), lift(linalg.matrix_power), lift(linalg.multi_dot)
eigvalsh = lift(linalg.eigvalsh)
for _name, _f in (("inverse", inv), ("det", det), ("cholesky", cholesky), ("matrix_power", matrix_power)):
    method(_name)(_f)


def slogdet(A: Any) -> Slogdet:
    """Sign and logarithm of the absolute value of the determinant."""
    return Slogdet(*lift(linalg.slogdet)(A))


def eigh(A: Any, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return Eigh(*lift(linalg.eigh)(A, UPLO))


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of the entries, or along an axis."""
    return norm(x, ord, dim, keepdim)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """The norm of a matrix."""
    return lift(linalg.norm, "matrix_norm")(A, ord, tuple(dim), keepdim)


def linalg_norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """The 2-norm of all entries; with `ord` and two axes, the norm of a matrix."""
    if (isinstance(dim, tuple | list) and len(dim) == 2) or (ord is not None and dim is None and A._data.ndim == 2):
        return matrix_norm(A, "fro" if ord is None else ord, dim if dim is not None else (0, 1), keepdim)
    return norm(A, 2 if ord is None else ord, dim, keepdim)


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of a difference."""
    return norm(input - other, p)
