"""Triangular, Cholesky and LU factors, and solutions from them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import shape_of
from fnad.numpy.indexing import as_array, known
from fnad.primitives import factors as prims
from fnad.primitives import linalg as square_prims
from fnad.scipy.linalg._arguments import as_given, columns, orientation, real_square, square, transposed

# -- triangular matrices -------------------------------------------------------------------------------------------


def triangular(a: Any, b: Any, lower: bool, unit: bool = False, trans: Any = 0) -> Any:
    turned, conjugate = orientation(trans)
    a = np.conjugate(a) if conjugate and a.dtype.kind == "c" else a
    return prims.triangular_solve(transposed(a) if turned else a, b, lower=lower != turned, unit=unit)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The x with `a @ x = b` for a triangular matrix, of which only that triangle is read: `scipy.linalg.solve_triangular`.

    Args:
        a: Matrices, (..., n, n).
        b: A vector (n,), or matrices (..., n, m) whose leading axes broadcast with those of `a`.
        trans: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
        lower: Whether the lower triangle is the one to read.
        unit_diagonal: Whether the diagonal counts as ones and is not read.
        overwrite_b: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        An array of the shape of `b`, with the leading axes of both. The gradient by `a` is 0 in what is not read.

    Raises:
        ShapeError: the shapes do not fit.
        LinAlgError: an entry of the diagonal is 0.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.scipy.linalg import solve_triangular
        >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
        >>> solve_triangular(a, np.array([2.0, 9.0]), lower=True)
        array([1., 2.])
        >>> fnad.grad(lambda a: np.sum(solve_triangular(a, np.array([2.0, 9.0]), lower=True)))(a)
        array([[-0.375,  0.   ],
               [-0.25 , -0.5  ]])
    """
    a = square(a, check_finite)
    b, vector = columns(b, a, check_finite)
    return as_given(triangular(a, b, bool(lower), bool(unit_diagonal), trans), vector)


# -- symmetric matrices --------------------------------------------------------------------------------------------


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Cholesky factor of real positive definite matrices: `scipy.linalg.cholesky`.

    Args:
        a: Real matrices, (..., n, n), taken for symmetric: only one triangle is read, and the gradient is symmetric.
        lower: Whether to read the lower triangle and return l with `l @ l.T = a`; otherwise u with `u.T @ u = a`.
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        Triangular matrices of the shape of `a`.

    Raises:
        LinAlgError: a matrix is not positive definite.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import cholesky
        >>> cholesky(np.array([[4.0, 2.0], [2.0, 10.0]]))
        array([[2., 1.],
               [0., 3.]])
    """
    a = real_square(a, check_finite, "cholesky")
    return square_prims.cholesky(a) if lower else transposed(square_prims.cholesky(transposed(a)))


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Cholesky factor and which triangle it is, for `cho_solve`: `scipy.linalg.cho_factor`.

    Args:
        a: Real matrices, (..., n, n), taken for symmetric: only one triangle is read, and the gradient is symmetric.
        lower: Which triangle.
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        A pair `(c, lower)`. What SciPy leaves in the other triangle is 0 here.

    Raises:
        LinAlgError: a matrix is not positive definite.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import cho_factor, cho_solve
        >>> cho_solve(cho_factor(np.array([[4.0, 2.0], [2.0, 10.0]])), np.array([8.0, 22.0]))
        array([1., 2.])
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The x with `a @ x = b` from the Cholesky factor of `a`: `scipy.linalg.cho_solve`.

    Args:
        c_and_lower: What `cho_factor` returns: a factor and which triangle of it to read.
        b: A vector (n,) or matrices (..., n, m).
        overwrite_b: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        An array of the shape of `b`, with the leading axes of both.

    Raises:
        ShapeError: the shapes do not fit.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.scipy.linalg import cho_factor, cho_solve
        >>> b = np.array([1.0, 1.0])
        >>> fnad.grad(lambda s: b @ cho_solve(cho_factor(s * np.eye(2)), b))(4.0)
        np.float64(-0.125)
    """
    c, lower = c_and_lower
    c = square(c, check_finite)
    b, vector = columns(b, c, check_finite)
    first, second = ("N", "C") if lower else ("C", "N")
    return as_given(triangular(c, triangular(c, b, bool(lower), trans=first), bool(lower), trans=second), vector)


# -- general matrices ----------------------------------------------------------------------------------------------


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The LU factors of square matrices, with rows exchanged, for `lu_solve`: `scipy.linalg.lu_factor`.

    Args:
        a: Matrices, (..., n, n).
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        A pair: both factors in one array of the shape of `a`, and pivots (..., n), which are constant.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import lu_factor, lu_solve
        >>> lu_solve(lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 4.0]))
        array([1., 1.])
    """
    both, pivots = prims.lu(square(a, check_finite))
    value = known(both)
    if value is not None and np.any(np.diagonal(value, 0, -2, -1) == 0):
        warnings.warn("Diagonal number is exactly zero. Singular matrix.", _scipy.linalg().LinAlgWarning, stacklevel=2)
    return both, pivots


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The x with `a @ x = b` from the LU factors of `a`: `scipy.linalg.lu_solve`.

    Args:
        lu_and_piv: What `lu_factor` returns.
        b: A vector (n,) or matrices (..., n, m).
        trans: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
        overwrite_b: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        An array of the shape of `b`, with the leading axes of both.

    Raises:
        ShapeError: the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import lu_factor, lu_solve
        >>> lu_solve(lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 4.0]), trans=1)
        array([2. , 0.5])
    """
    both, pivots = lu_and_piv
    both = square(both, check_finite)
    b, vector = columns(b, both, check_finite)
    order = prims.permutation(as_array(pivots))
    turned, _ = orientation(trans)
    if not turned:
        x = triangular(both, _rows(b, order), lower=True, unit=True)
        return as_given(triangular(both, x, lower=False), vector)
    x = triangular(both, b, lower=False, trans=trans)
    x = triangular(both, x, lower=True, unit=True, trans=trans)
    return as_given(_rows(x, np.argsort(order, axis=-1)), vector)


def _rows(b: Any, order: Any) -> Any:
    """Rows in another order; leading axes broadcast."""
    lead = np.broadcast_shapes(shape_of(b)[:-2], shape_of(order)[:-1])
    b = np.broadcast_to(b, (*lead, *shape_of(b)[-2:]))
    return np.take_along_axis(b, np.broadcast_to(order, (*lead, shape_of(order)[-1]))[..., None], axis=-2)


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False) -> Any:
    """p, l and u with `a = p @ l @ u` of square matrices: `scipy.linalg.lu`.

    Args:
        a: Matrices, (..., n, n).
        permute_l: Whether to return `p @ l` and u.
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.
        p_indices: Whether to return p as indices, with `a = l[p] @ u`.

    Returns:
        Three arrays, or two.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import lu
        >>> lu(np.array([[1.0, 2.0], [2.0, 2.0]]), permute_l=True)
        (array([[0.5, 1. ],
               [1. , 0. ]]), array([[2., 2.],
               [0., 1.]]))
    """
    both, pivots = prims.lu(square(a, check_finite))
    eye = np.eye(shape_of(both)[-1], dtype=both.dtype.type(0).real.dtype)
    left, right = np.tril(both, -1) + eye, np.triu(both)
    back = np.argsort(prims.permutation(pivots), axis=-1)
    if permute_l:
        return _rows(left, back), right
    if p_indices:
        return back, left, right
    return np.astype(np.equal(back[..., :, None], np.arange(eye.shape[0])), eye.dtype), left, right
