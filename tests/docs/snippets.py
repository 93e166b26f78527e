"""Runs the Python blocks of a documentation page, and compares what they print with what the page shows."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import sys
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS
EXAMPLE = "example.py"  # the file name that errors raised by a block show


@dataclass
class Block:
    """A fenced Python block, and the text block right behind it: what it prints."""

    source: str
    line: int
    want: str | None

    @property
    def prompts(self) -> bool:
        return self.source.lstrip().startswith(">>>")


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page in order. A ```text block that follows one with nothing between is its output."""
    text = page.read_text(encoding="utf-8")
    out: list[Block] = []
    end = -1
    for match in _FENCE.finditer(text):
        language, body = match.groups()
        if language == "python":
            out.append(Block(body, text.count("\n", 0, match.start(2)) + 1, None))
            end = match.end()
        elif language == "text" and end >= 0 and not text[end : match.start()].strip():
            out[-1].want = body
            end = -1
    return out


class Page:
    """The namespace that the blocks of a page share: a module, so that dataclasses and pickling find it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = types.ModuleType(f"docs_page_{path.stem}")
        self.globals: dict[str, Any] = self.module.__dict__

    def __enter__(self) -> Page:
        sys.modules[self.module.__name__] = self.module
        return self

    def __exit__(self, *_: object) -> None:
        sys.modules.pop(self.module.__name__, None)
        linecache.cache.pop(EXAMPLE, None)

    def run(self, block: Block) -> None:
        """Run one block; AssertionError with both outputs if it prints something else than the page shows."""
        if block.prompts:
            self._doctest(block)
            return
        got = self._execute(block)
        if block.want is None:
            assert got == "", f"{self.path.name}:{block.line}: prints this, but the page shows no output:\n{got}"
            return
        if not doctest.OutputChecker().check_output(block.want, got, FLAGS):
            raise AssertionError(f"{self.path.name}:{block.line}: the page shows\n{block.want}\nbut the block prints\n{got}")

    def _execute(self, block: Block) -> str:
        lines = block.source.splitlines(keepends=True)
        linecache.cache[EXAMPLE] = (len(block.source), None, lines, EXAMPLE)
        printed = io.StringIO()
        code = compile(block.source, EXAMPLE, "exec", dont_inherit=True)
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, self.globals)
        except Exception as error:
            if block.want is None:
                raise AssertionError(f"{self.path.name}:{block.line}: raises {error!r}") from error
            printed.write("".join(traceback.format_exception_only(error)))
        return printed.getvalue()

    def _doctest(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.source, self.globals, self.path.name, str(self.path), block.line - 1)
        test.globs = self.globals  # the very dict: later blocks see what this one defines
        run_doctest(test)


def run_doctest(test: doctest.DocTest) -> None:
    """Run a doctest; AssertionError with the report if it fails."""
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=report.write, clear_globs=False)
    assert not runner.failures, report.getvalue()
