"""Batches of a data set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fnad.errors import UnsupportedError
from fnad.torch._creation import tensor
from fnad.torch._shapes import stack
from fnad.torch._tensor import Tensor, make
from fnad.torch.utils.data.dataset import IterableDataset, TensorDataset
from fnad.torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


def default_collate(batch: Any) -> Any:
    """Examples as one: tensors, arrays and numbers side by side along a new first axis, in tuples, lists and dicts as they came.

    Raises:
        TypeError: examples are something else.
        RuntimeError: they are not alike.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray | np.generic):
        return make(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, float):
        return tensor(batch, dtype=np.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {k: default_collate([x[k] for x in batch]) for k in first}
    if isinstance(first, tuple | list):
        if any(len(x) != len(first) for x in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(list(column)) for column in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")


class DataLoader:
    """Batches of a data set, in order or shuffled.

    Args:
        dataset: Examples by their number, or an iterable.
        batch_size: How many examples at once; None for one at a time, without a batch axis.
        shuffle: Whether each pass takes them in a new random order.
        sampler: The order, instead.
        batch_sampler: The batches as lists of numbers, instead.
        num_workers: Must be 0: examples are loaded in this process.
        collate_fn: What makes a batch of a list of examples; see `default_collate`.
        pin_memory: Has no meaning here.
        drop_last: Whether a smaller last batch is left out.
        timeout: Has no meaning here.
        worker_init_fn: Has no meaning here.
        generator: Where the order comes from; `torch.manual_seed` sets the default one.

    Example:
        >>> import fnad.torch as torch
        >>> from fnad.torch.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(torch.arange(5), torch.zeros(5, 2))
        >>> [x.tolist() for x, y in DataLoader(data, batch_size=2)]
        [[0, 1], [2, 3], [4]]

    Reference: `torch.utils.data.DataLoader` of PyTorch 2.13.
    """

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
        num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Any = None, generator: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        if num_workers:
            raise UnsupportedError(
                "fnad.torch: DataLoader loads in this process", got={"num_workers": num_workers}, fix="leave num_workers out"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        self.dataset, self.drop_last, self.num_workers, self.generator = dataset, drop_last, num_workers, generator
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and (shuffle or sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle and sampler options")
        self.batch_size = None if batch_sampler is not None else batch_size
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not self.iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        plain = batch_size is None and batch_sampler is None
        self.collate_fn: Any = collate_fn if collate_fn is not None else _single if plain else default_collate
        self._direct = collate_fn is None and type(dataset) is TensorDataset and batch_sampler is not None

    def __iter__(self) -> Iterator[Any]:
        if self.iterable:
            return self._of_iterable()
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[i]) for i in self.sampler)
        if self._direct:  # one selection of rows instead of a selection per example
            return ([make(t._data[numbers]) for t in self.dataset.tensors] for numbers in map(np.asarray, self.batch_sampler))
        return (self.collate_fn([self.dataset[i] for i in numbers]) for numbers in self.batch_sampler)

    def _of_iterable(self) -> Iterator[Any]:
        examples: Iterable[Any] = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        return len(self.sampler) if self.batch_sampler is None else len(self.batch_sampler)


def _single(x: Any) -> Any:
    return make(x) if isinstance(x, np.ndarray) else x
