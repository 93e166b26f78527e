"""Batches of a data set."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fnad.torch._creation import tensor
from fnad.torch._random import draws
from fnad.torch._shapes import stack
from fnad.torch._tensor import Tensor, make
from fnad.torch.utils.data.dataset import IterableDataset, TensorDataset
from fnad.torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from fnad.torch.utils.data.workers import Ended, Order, Pool


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
        num_workers: How many processes load batches; with 0 this one does.
        collate_fn: What makes a batch of a list of examples; see `default_collate`.
        pin_memory: Has no meaning here.
        drop_last: Whether a smaller last batch is left out.
        timeout: Seconds to wait for a batch of a worker; 0 for no end.
        worker_init_fn: Called in each worker with its number, before it loads.
        multiprocessing_context: How workers are started: "fork", "spawn", "forkserver", or a context of `multiprocessing`.
        generator: Where the order, and the seeds of workers, come from; `torch.manual_seed` sets the default one.
        prefetch_factor: How many batches each worker loads ahead; 2 if None.
        persistent_workers: Whether workers stay for the next pass.
        pin_memory_device: Has no meaning here.
        in_order: Whether batches come in the order of the sampler, or as workers are ready.

    Workers draw from the seeds `base + number` (in `torch`, `random` and NumPy's global state), where `base` comes from the generator:
    two runs with the same seed give the same batches. An error in a worker is raised here, with its text. Workers ignore Ctrl-C, which
    ends them through this process; they end with it, too.

    Raises:
        ValueError: options contradict each other.
        RuntimeError: when iterating: a worker died, or took longer than `timeout`.

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
        timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        _check(num_workers, timeout, multiprocessing_context, prefetch_factor, persistent_workers)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        self.dataset, self.drop_last, self.num_workers, self.generator = dataset, drop_last, num_workers, generator
        self.worker_init_fn, self.timeout, self.persistent_workers = worker_init_fn, timeout, persistent_workers
        self.multiprocessing_context, self.prefetch_factor, self.in_order = multiprocessing_context, prefetch_factor, in_order
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
        self.collate_fn: Any = collate_fn if collate_fn is not None else default_convert if plain else default_collate
        self._direct = collate_fn is None and type(dataset) is TensorDataset and batch_sampler is not None
        self._pool: Pool | None = None

    def _fetcher(self) -> Callable[[Any], Any]:
        """What makes batches of numbers; for an iterable data set, one after the other, of None."""
        if self.iterable:
            return _OfIterable(self.dataset, self.collate_fn, self.batch_size, self.drop_last)
        if self.batch_sampler is None:
            return functools.partial(_example, self.dataset, self.collate_fn)
        return functools.partial(_rows, self.dataset) if self._direct else functools.partial(_examples, self.dataset, self.collate_fn)

    def _tasks(self) -> Iterable[Any]:
        """What the fetcher is asked in one pass."""
        if self.iterable:
            return itertools.repeat(None)
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            return self._by_workers()
        batches = map(self._fetcher(), self._tasks())
        return itertools.takewhile(lambda b: not isinstance(b, Ended), batches) if self.iterable else batches

    def _by_workers(self) -> Iterator[Any]:
        pool = self._pool
        if pool is None or not pool.close.alive:
            seed = int(draws(self.generator).integers(0, 2**63, ()))
            loader = copy.copy(self)  # without what cannot travel to another process
            loader._pool = loader.generator = loader.sampler = None
            order = Order(self.dataset, loader._fetcher, self.worker_init_fn, self.num_workers, seed)
            pool = Pool(order, self.multiprocessing_context, self.prefetch_factor or 2, self.timeout, self.in_order)
            self._pool = pool if self.persistent_workers else None
        return _until_end(pool, pool.run(self._tasks()), self.persistent_workers)

    def __len__(self) -> int:
        if self.iterable:
            n: int = len(self.dataset)
            return n if self.batch_size is None else n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler) if self.batch_sampler is None else len(self.batch_sampler)


def _check(num_workers: int, timeout: float, context: Any, prefetch_factor: int | None, persistent: bool) -> None:
    """The options about workers."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if not num_workers and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable multiprocessing, otherwise "
            "set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be positive")
    if persistent and not num_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and not num_workers:
        raise ValueError(
            f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={num_workers}"
        )


def _until_end(pool: Pool, batches: Iterator[Any], stays: bool) -> Iterator[Any]:
    """The batches of a pass; then the workers end, unless they stay."""
    try:
        yield from batches
    finally:
        if not stays:
            pool.close()


def _rows(dataset: TensorDataset, numbers: Any) -> list[Any]:
    """One selection of rows instead of a selection per example."""
    where = np.asarray(numbers)
    return [make(t._data[where]) for t in dataset.tensors]


def _examples(dataset: Any, collate: Callable[[Any], Any], numbers: Any) -> Any:
    if hasattr(dataset, "__getitems__"):
        return collate(dataset.__getitems__(numbers))
    return collate([dataset[i] for i in numbers])


def _example(dataset: Any, collate: Callable[[Any], Any], number: Any) -> Any:
    return collate(dataset[number])


class _OfIterable:
    """Batches of an iterable data set, one per call.

    Args:
        dataset: The data set.
        collate: What makes a batch of a list of examples.
        size: How many examples at once; None for one, without a batch axis.
        drop_last: Whether a smaller last batch is left out.
    """

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], size: int | None, drop_last: bool) -> None:
        self.examples, self.collate, self.size, self.drop_last = iter(dataset), collate, size, drop_last

    def __call__(self, _: Any) -> Any:
        if self.size is None:
            found = next(self.examples, self)
            return Ended() if found is self else self.collate(found)
        batch = list(itertools.islice(self.examples, self.size))
        return Ended() if not batch or (self.drop_last and len(batch) < self.size) else self.collate(batch)


def default_convert(x: Any) -> Any:
    """An example as it is, its arrays as tensors."""
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufc":
        return make(np.asarray(x))
    if isinstance(x, Mapping):
        return {k: default_convert(v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        parts = [default_convert(v) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else parts
    return x
