"""The tensor: an array, and what `backward()` needs to know of it. Its operations are registered by the other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import UnknownNameError
from fnad.torch import _dtypes
from fnad.torch._dtypes import LEGACY, dtype_of


class Size(tuple[int, ...]):
    """A shape."""

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class device:
    """Where a tensor lives: the CPU, always."""

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        name: str = type.type if isinstance(type, device) else str(type).split(":")[0]
        if name != "cpu":
            raise UnknownNameError(f"fnad runs on the CPU; there is no device {name!r}", fix='use torch.device("cpu")')
        self.type: str = name
        self.index = index

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")


CPU = device()


class Tensor:
    """An array of numbers that can record what is done with it.

    It lies on a NumPy array: `torch.from_numpy(a)` and `x.numpy()` copy nothing. Everything that PyTorch's tensor is used for in a
    training script works alike; what is missing raises an error with its name.

    Args:
        data: Numbers in nested lists, or an array; or sizes, for an uninitialised tensor.

    Example:
        >>> import fnad.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    _data: Any
    _counter: list[int]
    """How often the entries were changed in place; shared by all tensors on the same memory."""
    _node: Any = None
    """The operation that made it, on the tape; None for a leaf."""
    _k = 0
    """Which of that operation's outputs it is."""
    _req = False
    _grad: Any = None
    _view: Any = None
    """For a view of another tensor: see `fnad.torch._views`."""
    _viewed = False
    """Whether it shares its entries with another tensor while they are traced."""
    _hooks: dict[int, Any] | None = None
    _after: dict[int, Any] | None = None
    _retained: Any = None

    __array_priority__ = 1000.0

    def __init__(self, *data: Any) -> None:
        sizes = data[0] if len(data) == 1 and isinstance(data[0], Size) else data
        if all(isinstance(n, int) for n in sizes) and (data or len(sizes)):
            self._data = np.empty(tuple(sizes), _dtypes.DEFAULT.floating)
        else:
            self._data = np.array(
                data[0]._data if data and isinstance(data[0], Tensor) else data[0] if data else [], _dtypes.DEFAULT.floating
            )
        self._counter = [0]

    # -- what is known ---------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self._req

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._node is not None:
            if not value:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
                    "that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if value and self._data.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self._req = bool(value)

    @property
    def grad(self) -> Any:
        """What `backward()` has added up, or None."""
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__!r}")
            if value._data.shape != self._data.shape:
                raise RuntimeError(
                    f"assigned grad has data of a different size: got {list(value._data.shape)}, expected {list(self._data.shape)}"
                )
            if value._data.dtype != self._data.dtype:
                raise RuntimeError(f"assigned grad has data of a different type: got {value.dtype}, expected {self.dtype}")
        self._grad = value

    @property
    def grad_fn(self) -> Any:
        """The operation that made it; None for a leaf."""
        return self._node

    @property
    def is_leaf(self) -> bool:
        return self._node is None

    @property
    def shape(self) -> Size:
        return Size(self._data.shape)

    @property
    def dtype(self) -> _dtypes.dtype:
        return dtype_of(self._data.dtype)

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def device(self) -> device:
        return CPU

    @property
    def is_cuda(self) -> bool:
        return False

    @property
    def itemsize(self) -> int:
        return self._data.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._data.size * self._data.dtype.itemsize

    @property
    def _version(self) -> int:
        return self._counter[0]

    @property
    def _base(self) -> Any:
        return None if self._view is None else self._view.base

    @property
    def retains_grad(self) -> bool:
        return self._retained is not None

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self._data.shape[dim]

    def dim(self) -> int:
        return self._data.ndim

    def numel(self) -> int:
        return self._data.size

    nelement = numel
    ndimension = dim

    def element_size(self) -> int:
        return self._data.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        steps = tuple(s // self._data.itemsize for s in self._data.strides)
        return steps if dim is None else steps[dim]

    def is_contiguous(self) -> bool:
        return bool(self._data.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        return self._data.dtype.kind == "f"

    def is_complex(self) -> bool:
        return self._data.dtype.kind == "c"

    def data_ptr(self) -> int:
        return int(self._data.ctypes.data)

    def type(self, dtype: Any = None) -> Any:
        if dtype is None:
            return f"torch.{LEGACY[self._data.dtype]}Tensor"
        return self.to(dtype)

    def get_device(self) -> int:
        return -1

    # -- the same memory -------------------------------------------------------------------------------------------------

    @property
    def data(self) -> Any:
        """A tensor on the same memory that is not part of the tape; changes of it in place are not noticed."""
        new = make(self._data)
        if isinstance(self._data, Tracer):
            self._viewed = new._viewed = True
        return new

    @data.setter
    def data(self, value: Any) -> None:
        if self._req and value._data.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._data = value._data

    def detach(self) -> Any:
        """A tensor on the same memory that is not part of the tape; changes of it in place are noticed."""
        new = make(self._data, self._counter)
        if isinstance(self._data, Tracer):
            self._viewed = new._viewed = True
        return new

    def numpy(self, *, force: bool = False) -> Any:
        """The array itself.

        Raises:
            RuntimeError: the tensor requires gradients, which would be lost; `x.detach().numpy()`.
        """
        if self._req and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        self._known("numpy()")
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        if self._req:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._data.__dlpack_device__()

    # -- Python numbers --------------------------------------------------------------------------------------------------

    def _known(self, wanted: str) -> None:
        if isinstance(self._data, Tracer):
            raise self._data._refuse(wanted)

    def item(self) -> Any:
        """The only entry, as a Python number."""
        try:
            return self._data.item()
        except ValueError:
            raise RuntimeError(f"a Tensor with {self._data.size} elements cannot be converted to Scalar") from None

    def tolist(self) -> Any:
        return self._data.tolist()

    def __bool__(self) -> bool:
        if self._data.size != 1:
            many = "more than one value" if self._data.size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(self._data)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iub" or self._data.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._data.ndim:
            raise TypeError("iteration over a 0-d tensor")
        me: Any = self
        return (me[i] for i in range(self._data.shape[0]))

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self._data.ndim else repr(self)

    __hash__ = object.__hash__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._node is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
                "Use x.detach().clone()"
            )
        new = object.__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("_counter", "_hooks", "_after", "_view")})
        new._data, new._counter = self._data.copy(), [0]
        if self._grad is not None:
            new._grad = make(self._grad._data.copy())
        return new

    def __reduce__(self) -> Any:
        if self._node is not None:
            raise RuntimeError("only leaves of the graph can be pickled; use x.detach()")
        return _rebuild, (type(self), self._data, self._req)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(
            f"fnad.torch: Tensor.{name} does not exist here",
            fix="compose it from other operations; x.detach().numpy() gives the array to NumPy",
        )


def make(data: Any, counter: list[int] | None = None) -> Any:
    """A tensor on an array, not part of the tape."""
    t = object.__new__(Tensor)
    t._data = data
    t._counter = [0] if counter is None else counter
    return t


def _rebuild(cls: Any, data: Any, req: bool) -> Any:
    t = object.__new__(cls)
    t._data, t._counter, t._req = data, [0], req
    return t


def method(*names: str) -> Callable[[Any], Any]:
    """Decorator: the function is also the tensor's method of these names (of its own name, if none is given)."""

    def register(function: Any) -> Any:
        for name in names or (function.__name__,):
            setattr(Tensor, name, function)
        return function

    return register
