"""Runs the Python of a documentation page, and compares what it prints with what the page shows.

`python tests/docs/snippets.py docs/errors.md` writes what the blocks print now into the page.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import sys
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.special

from fnad.core.dispatch import PROVIDERS, ROWS
from fnad.core.primitive import REGISTRY

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS
EXAMPLE = "example.py"  # the file name that errors raised by a block show


@dataclass
class Block:
    """A fenced Python block, and the text block right behind it: what it prints, and where that stands in the page."""

    source: str
    line: int
    want: str | None = None
    span: tuple[int, int] = (0, 0)

    @property
    def prompts(self) -> bool:
        return self.source.lstrip().startswith(">>>")


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page in order. A ```text block that follows one with nothing between is its output."""
    out: list[Block] = []
    end = -1
    for match in _FENCE.finditer(text):
        language, body = match.groups()
        if language == "python":
            out.append(Block(body, text.count("\n", 0, match.start(2)) + 1))
            end = match.end()
        elif language == "text" and end >= 0 and not text[end : match.start()].strip():
            out[-1].want, out[-1].span = body, match.span(2)
            end = -1
    return out


def table_rows(text: str) -> Iterator[tuple[str, str]]:
    """(expression, result) of the rows of tables that have columns `expression` and `gives`."""
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [c.strip().strip("`") for c in line.strip().strip("|").split(" | ")]
        if not columns:
            columns = cells
        elif "expression" in columns and "gives" in columns and not set(line) <= set("|-: "):
            yield cells[columns.index("expression")], cells[columns.index("gives")]


class Page:
    """The namespace that the blocks of a page share: a module, so that dataclasses and pickling find it.

    Primitives and dispatch rows that a page adds are taken back at the end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = types.ModuleType(f"docs_page_{path.stem}")
        self.module.__file__ = EXAMPLE
        self.globals: dict[str, Any] = self.module.__dict__

    def __enter__(self) -> Page:
        sys.modules[self.module.__name__] = self.module
        for provider in PROVIDERS:  # what is declared on first use is declared now, and stays
            provider(scipy.special.expit)
        self.registry, self.rows = dict(REGISTRY), dict(ROWS)
        return self

    def __exit__(self, *_: object) -> None:
        sys.modules.pop(self.module.__name__, None)
        linecache.cache.pop(EXAMPLE, None)
        for table, before in ((REGISTRY, self.registry), (ROWS, self.rows)):
            table.clear()
            table.update(before)

    def run(self, block: Block) -> None:
        """Run one block; AssertionError with both outputs if it prints something else than the page shows."""
        if block.prompts:
            test = doctest.DocTestParser().get_doctest(block.source, self.globals, self.path.name, str(self.path), block.line - 1)
            test.globs = self.globals  # the very dict: later blocks see what this one defines
            run_doctest(test)
            return
        got = self.execute(block)
        if block.want is None:
            assert got == "", f"{self.path.name}:{block.line}: prints this, but the page shows no output:\n{got}"
        elif not doctest.OutputChecker().check_output(block.want, got, FLAGS):
            raise AssertionError(f"{self.path.name}:{block.line}: the page shows\n{block.want}\nbut the block prints\n{got}")

    def execute(self, block: Block) -> str:
        """What a block prints; with the error at the end if it raises one and the page shows output."""
        linecache.cache[EXAMPLE] = (len(block.source), None, block.source.splitlines(keepends=True), EXAMPLE)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(block.source, EXAMPLE, "exec", dont_inherit=True), self.globals)
        except Exception as error:
            if block.want is None:
                raise AssertionError(f"{self.path.name}:{block.line}: raises {error!r}") from error
            printed.write("".join(traceback.format_exception_only(error)))
        return printed.getvalue()


def run_doctest(test: doctest.DocTest) -> None:
    """Run a doctest; AssertionError with the report if it fails."""
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=report.write, clear_globs=False)
    assert not runner.failures, report.getvalue()


def update(path: Path) -> None:
    """Write the outputs of a page's blocks into it, where they differ. Doctest blocks are left as they are; what fails is printed."""
    text = path.read_text(encoding="utf-8")
    changes = []
    with Page(path) as page:
        for block in blocks(text):
            if block.prompts or block.want is None:
                try:
                    page.run(block)
                except AssertionError as error:
                    print(error)
                continue
            got = page.execute(block)
            if not doctest.OutputChecker().check_output(block.want, got, FLAGS):
                changes.append((block.span, got))
    for (start, stop), got in reversed(changes):
        text = text[:start] + got + text[stop:]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
