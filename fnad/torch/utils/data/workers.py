"""Processes that load batches.

Batch k is loaded by worker k modulo their number, so that random numbers drawn by workers do not depend on who is faster. Each worker has
a queue of its own for what it is asked and a pipe of its own for what it answers: one that is killed leaves no lock behind, and is noticed.
Workers ignore Ctrl-C; the process that asks ends them.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import queue
import random
import signal
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fnad.torch._random import manual_seed

_LOOK = 2.0  # seconds after which a worker looks whether its parent is alive
_PATIENCE = 5.0  # seconds for a worker to end by itself


_read_ends: set[Any] = set()
"""Of all pipes of this process: a forked worker closes its copies, or another one would not notice that nobody reads any more."""


class WorkerInfo(NamedTuple):
    """What `get_worker_info()` tells in a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker this process is; None in the process that iterates.

    Reference: `torch.utils.data.get_worker_info` of PyTorch 2.13.
    """
    return _Here.info


class Ended:
    """In place of a batch: a worker's part of an iterable data set has ended."""


class Failure(NamedTuple):
    """In place of a batch: what went wrong in a worker."""

    type: Any
    text: str
    worker: int

    def again(self) -> Exception:
        """The error, to be raised here."""
        message = f"Caught {self.type.__name__} in DataLoader worker process {self.worker}.\nOriginal {self.text}"
        try:
            error: Exception = self.type(message)
        except Exception:
            error = RuntimeError(message)
        return error


def _failure(error: BaseException, worker: int) -> Failure:
    return Failure(type(error), "".join(traceback.format_exception(error)), worker)


class Order(NamedTuple):
    """What is the same for all workers of a loader."""

    dataset: Any
    fetcher: Callable[[], Callable[[Any], Any]]
    """Makes, for each pass, a function from a list of numbers to a batch (of an iterable data set: from None)."""
    init: Callable[[int], Any] | None
    workers: int
    seed: int


def _work(order: Order, number: int, inbox: Any, outbox: Any, parent: int) -> None:
    """What a worker does until it is asked to end, or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for end in _read_ends:
        end.close()
    seed = order.seed + number
    manual_seed(seed)
    random.seed(seed)
    np.random.seed(np.random.SeedSequence([order.seed, number]).generate_state(4))
    _Here.info = WorkerInfo(number, order.workers, seed, order.dataset)
    trouble = None
    try:
        if order.init is not None:
            order.init(number)
    except Exception as e:
        trouble = _failure(e, number)
    fetch: Any = None
    while True:
        try:
            task = inbox.get(timeout=_LOOK)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if task is None:
            return
        epoch, k, numbers = task
        if k < 0:
            fetch = None
            continue
        answer: Any = trouble
        if answer is None:
            try:
                fetch = order.fetcher() if fetch is None else fetch
                answer = fetch(numbers)
            except Exception as e:
                answer = _failure(e, number)
        try:
            outbox.send((epoch, k, answer))
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as e:  # it cannot be pickled
            outbox.send((epoch, k, _failure(e, number)))


class Pool:
    """Workers of one loader.

    Args:
        order: What they do.
        context: How processes are started: a name, a context of `multiprocessing`, or None for its usual one.
        prefetch: How many batches each worker loads ahead.
        timeout: Seconds to wait for a batch; 0 for no end.
        in_order: Whether batches come in the order of the sampler, or as they are ready.
    """

    def __init__(self, order: Order, context: Any, prefetch: int, timeout: float, in_order: bool) -> None:
        make: Any = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        self.count, self.prefetch, self.timeout, self.in_order = order.workers, prefetch, timeout, in_order
        self.epoch = 0
        self.inboxes: list[Any] = []
        self.outboxes: list[Any] = []
        self.processes: list[Any] = []
        self.close = weakref.finalize(self, _end, self.processes, self.inboxes, self.outboxes)
        for number in range(order.workers):
            inbox = make.Queue()
            mine, theirs = make.Pipe(duplex=False)
            _read_ends.add(mine)
            process = make.Process(target=_work, args=(order, number, inbox, theirs, os.getpid()), daemon=True)
            process.start()
            theirs.close()
            self.inboxes.append(inbox)
            self.outboxes.append(mine)
            self.processes.append(process)

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        """The batches of one pass, which begins at once."""
        self.epoch += 1
        for inbox in self.inboxes:
            inbox.put((self.epoch, -1, None))
        run = _Pass(self, iter(tasks))
        run.ask(self.count * self.prefetch)
        return run.batches()

    def receive(self, epoch: int) -> tuple[int, Any]:
        """The next answer of a pass."""
        try:
            while True:
                ready: list[Any] = multiprocessing.connection.wait(self.outboxes, self.timeout or None)
                if not ready:
                    raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
                for outbox in ready:
                    its, k, answer = self._read(outbox)
                    if its == epoch:
                        return k, answer
        except BaseException:  # an answer may have been read in part
            for process in self.processes:
                process.terminate()
            self.close()
            raise

    def _read(self, outbox: Any) -> Any:
        try:
            return outbox.recv()
        except EOFError:
            process = self.processes[self.outboxes.index(outbox)]
            process.join(_PATIENCE)
            told = f"{process.pid}, exit code {process.exitcode}"
            raise RuntimeError(f"DataLoader worker (pid(s) {told}) exited unexpectedly") from None


def _end(processes: list[Any], inboxes: list[Any], outboxes: list[Any]) -> None:
    """Ask workers to end, and see to it."""
    for inbox in inboxes:
        inbox.put(None)
    for outbox in outboxes:
        outbox.close()
        _read_ends.discard(outbox)
    last = time.monotonic() + _PATIENCE
    for process in processes:
        process.join(max(last - time.monotonic(), 0.1))
        if process.is_alive():
            process.kill()
            process.join()
    for inbox in inboxes:
        inbox.cancel_join_thread()
        inbox.close()


class _Pass:
    """One pass through a data set by workers.

    Args:
        pool: The workers.
        tasks: What they are asked, in order.
    """

    def __init__(self, pool: Pool, tasks: Iterator[Any]) -> None:
        self.pool, self.tasks, self.epoch = pool, tasks, pool.epoch
        self.active = list(range(pool.count))
        self.turn = self.asked = 0
        self.worker: dict[int, int] = {}
        """Which worker was asked for a batch that has not come yet."""
        self.ready: dict[int, Any] = {}

    def ask(self, times: int) -> None:
        """Ask the next workers for batches."""
        for _ in range(times):
            if not self.active:
                return
            try:
                task = next(self.tasks)
            except StopIteration:
                return
            number = self.active[self.turn % len(self.active)]
            self.turn = (self.turn + 1) % len(self.active)
            self.pool.inboxes[number].put((self.epoch, self.asked, task))
            self.worker[self.asked] = number
            self.asked += 1

    def batches(self) -> Iterator[Any]:
        """What is ready, in order; then more is asked for."""
        while self.worker or self.ready:
            if self.epoch != self.pool.epoch:
                raise RuntimeError("another pass through this DataLoader, whose workers are persistent, has begun")
            k = self._next()
            if k is None:
                continue
            batch = self.ready.pop(k)
            if isinstance(batch, Failure):
                raise batch.again()
            if not isinstance(batch, Ended):
                self.ask(1)
                yield batch

    def _next(self) -> int | None:
        """The number of a batch that may be given out; None after one more has come."""
        if self.ready:
            first = min([*self.worker, *self.ready])
            if not self.pool.in_order or first in self.ready:
                return min(self.ready)
        k, answer = self.pool.receive(self.epoch)
        number = self.worker.pop(k)
        self.ready[k] = answer
        if isinstance(answer, Ended) and number in self.active:
            place = self.active.index(number)
            self.active.remove(number)
            if self.active:
                self.turn = (self.turn - (place < self.turn)) % len(self.active)
            self.ask(1)
        return None
