"""profile: how long each part of a compiled program takes, and how fast it goes."""

from __future__ import annotations

import builtins
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fnad.compiler.groups import Group, aligned, groups, quantity
from fnad.compiler.pipeline import Executable
from fnad.compiler.simplify import simplify
from fnad.core.graph import Graph
from fnad.errors import ArgumentError, UnsupportedError
from fnad.jit import recorded
from fnad.typing import Function

_SECONDS = 0.3  # that the measurement takes, at least
_RUNS = range(5, 1000)
_SHORT = 44  # letters of a label in the chart
_COLOURS = {"loop": "tab:blue", "scan": "tab:green", "product": "tab:orange", "host": "tab:red"}


class Row(NamedTuple):
    """One group of a program, measured."""

    name: str
    """As in `fnad.explain`: g0, g1, ..."""
    kind: str
    """"loop", "scan", "product" or "host"."""
    what: str
    """The operations it computes."""
    line: str
    """The user's line that the first of them comes from."""
    time: float
    """Seconds: the median over the runs."""
    share: float
    """Of the sum over all groups, between 0 and 1."""
    bytes: int
    """Bytes read and written, each array counted once."""
    flops: int
    """Floating-point operations; 0 on the host, where they are not known."""
    bytes_per_second: float
    flops_per_second: float
    host: bool
    """Whether Python calls NumPy or SciPy for it."""


class Profile:
    """What `fnad.profile` measured; `print` shows a table.

    Attributes:
        rows: A list of named tuples, one per group in the order in which they run.
        time: Seconds of a call of the program as it is usually compiled, as a whole: the median over the runs.
        runs: How often the program ran.
    """

    def __init__(self, rows: list[Row], seconds: float, runs: int) -> None:
        self.rows, self.time, self.runs = rows, seconds, runs

    def sorted(self, by: str = "time") -> Profile:
        """The same with other rows first.

        Args:
            by: A field of the rows: "time", "bytes", "flops", "bytes_per_second", "flops_per_second", the largest first; or "name",
                "kind", "what", "line", in the order of the alphabet.

        Raises:
            ArgumentError: the rows have no such field.
        """
        if by not in Row._fields:
            raise ArgumentError("rows are sorted by one of their fields", got={"by": repr(by)}, fix=f"one of {', '.join(Row._fields)}")
        numbers = by not in ("name", "kind", "what", "line")
        return Profile(builtins.sorted(self.rows, key=lambda row: getattr(row, by), reverse=numbers), self.time, self.runs)

    def __str__(self) -> str:
        head = ("", "kind", "time", "share", "bytes/s", "flop/s", "line", "what")
        cells = [
            (
                r.name,
                r.kind,
                duration(r.time),
                f"{100 * r.share:.1f} %",
                quantity(r.bytes_per_second, "B/s"),
                "" if r.host else quantity(r.flops_per_second, "flop/s"),
                r.line,
                r.what,
            )
            for r in self.rows
        ]
        total = sum(r.time for r in self.rows)
        note = f"all groups {duration(total)}; the whole program at once {duration(self.time)}; medians of {self.runs} runs"
        return f"{aligned([head, *cells], right=(2, 3, 4, 5))}\n{note}"

    __repr__ = __str__

    def plot(self, path: str | pathlib.Path | None = None) -> Any:
        """Draw the times as a bar chart.

        Args:
            path: Where to save it, as a file of the kind that its ending names. None leaves the figure to you.

        Returns:
            The matplotlib figure.

        Raises:
            UnsupportedError: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise UnsupportedError("plot draws with matplotlib, which is not installed", fix="pip install matplotlib") from None
        figure = Figure(figsize=(8, 1 + 0.32 * max(len(self.rows), 1)), layout="constrained")
        axes = figure.add_subplot()
        micro = [1e6 * r.time for r in self.rows]
        bars = axes.barh([f"{r.name}  {_short(r.what)}" for r in self.rows], micro, color=[_COLOURS[r.kind] for r in self.rows])
        speeds = [quantity(*(r.flops_per_second, "flop/s") if r.kind == "product" else (r.bytes_per_second, "B/s")) for r in self.rows]
        axes.bar_label(bars, speeds, padding=4)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.25 * max(micro, default=1))
        axes.set_xlabel("µs")
        axes.set_title(f"the whole program: {duration(self.time)}", loc="left")
        for kind in dict.fromkeys(r.kind for r in self.rows):
            axes.plot([], "s", color=_COLOURS[kind], label=kind)
        axes.legend(loc="lower right", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure


class Timed(Executable):
    """A program whose groups are native parts of their own; each run notes how long each took."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, apart=True)
        self.times: list[list[int]] = [[] for _ in self.steps]

    def _run_all(self, calls: Iterator[Callable[[], None]]) -> None:
        clock = time.perf_counter_ns
        for call, times in zip(calls, self.times, strict=True):
            start = clock()
            call()
            times.append(clock() - start)


def _measure(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Profile:
    graph, leaves = recorded(f, args, kwargs)
    graph = simplify(graph)
    whole, apart = Executable(graph), Timed(graph)
    totals: list[int] = []
    begin = time.perf_counter()
    while len(totals) < _RUNS.start or (time.perf_counter() - begin < _SECONDS and len(totals) < _RUNS.stop):
        start = time.perf_counter_ns()
        whole.convert(leaves)
        totals.append(time.perf_counter_ns() - start)
        apart.convert(leaves)
    medians = [1e-9 * statistics.median(times) for times in apart.times]
    rows = [_row(g, t, sum(medians)) for g, t in zip(groups(whole.schedule.nodes), medians, strict=True)]
    return Profile(rows, 1e-9 * statistics.median(totals), len(totals))


def _row(g: Group, seconds: float, total: float) -> Row:
    speed, work = g.bytes / seconds, g.flops / seconds
    return Row(g.name, g.kind, g.what, g.line, seconds, seconds / total, g.bytes, g.flops, speed, work, g.kind == "host")


def duration(seconds: float) -> str:
    """A time, three digits of it."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            break
    return f"{seconds * factor:.3g} {unit}"


def profile(f: Function) -> Callable[..., Profile]:
    """Measure the parts of the program that `fnad.jit(f)` compiles to.

    The program is compiled a second time with each of its groups as a native function of its own. Both run in turn, for a
    third of a second or at least 5 times; the clock is read before and after each group, which adds about a microsecond to it.
    What groups hand on to each other in registers goes through memory here, so small programs take longer than as a whole.
    Memory traffic is counted, not measured: an array that stays in the cache gives more bytes per second than memory has.
    A scan is one group. Groups are divided among threads as usual.

    Args:
        f: A function of pytrees of arrays, or what `fnad.jit` made of one.

    Returns:
        A function of the same arguments that returns a `Profile`: print it for a table, read its `rows`, or draw it with
        `plot(path)`.

    Raises:
        ConcretizationError: as `fnad.jit`.

    Example:
        >>> import numpy as np, fnad
        >>> measured = fnad.profile(lambda x, w: np.sum(np.tanh(x @ w)))(np.ones((200, 100)), np.ones((100, 50)))
        >>> [(row.kind, row.what, row.flops) for row in measured.rows][0]
        ('product', 'matmul', 2000000)
    """
    return lambda *args, **kwargs: _measure(f, args, kwargs)


def _short(what: str) -> str:
    return what if len(what) < _SHORT else what[: _SHORT - 3] + "..."
