"""From the loop language back to Python source, which numba compiles and Python runs as it stands."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any

from fnad.loops.folding import Folding, Sharing
from fnad.loops.ir import Block, Const, For, Function, If, Item, Op, Operand, Value, While
from fnad.loops.spelling import AUGMENTED, CHOICE, NOT, Expression, Writer, element, within


def source(fn: Function) -> tuple[str, dict[str, Any]]:
    """A Python function of `fn.args` that returns the tuple of `fn.returns`, and the names it needs besides `np` and `math`.

    It changes none of its arguments.
    """
    printer = Printer(fn)
    return printer.text(), printer.namespace


class Printer(Writer):
    """Writes one function."""

    def __init__(self, fn: Function) -> None:
        super().__init__(fn.source[0])
        self.fn = fn
        self.folding = Folding(fn)
        self.sharing = Sharing(fn, self.folding)

    def text(self) -> str:
        self.put(f"def {self.fn.name}({', '.join(self.name(a) for a in self.fn.args)}):")
        with self.block():
            for a in self.fn.args:
                if a in self.fn.written:
                    self.put(f"{self.name(a)} = {self.name(a)}.copy()")
            self._block(self.fn.body)
            values = [self.name(r) for r in self.fn.returns]
            self.comment(max((self.folding.folded[r].line for r in self.fn.returns if r in self.folding.folded), default=0))
            self.put(f"return ({', '.join(values)}{',' if len(values) == 1 else ''})")
        return self.source()

    def name(self, operand: Operand) -> Expression:
        """An operand as it is written: a number, a variable, or the operation that is folded into this place."""
        if isinstance(operand, Const):
            return super().name(operand)
        op = self.folding.folded.get(operand)
        if op is not None:
            return self.expression(op)
        return super().name(Value(self.sharing.name(operand), operand.type))

    # -- statements ----------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for item in block.items:
            if isinstance(item, Op):
                self._op(item)
            elif isinstance(item, If):
                self._if(item)
            elif isinstance(item, For):
                self._for(item)
            else:
                self._while(item)

    def _op(self, op: Op) -> None:
        if op.kind == "store":
            array, *index, value = op.args
            self._assign(element(self._read(array), [self._read(i) for i in index]), value, op.line)
        elif op.kind == "raise":
            self.put(raising(op.attrs["text"]), op.line)
        elif op.out is not None and op.out not in self.folding.folded and op.out not in self.folding.dead:
            self._set(self.name(op.out), op, op.line)

    def _read(self, operand: Operand | None) -> Expression:
        assert operand is not None
        return self.name(operand)

    def _assign(self, target: str, value: Operand | None, line: int) -> None:
        op = self.folding.folded.get(value) if isinstance(value, Value) else None
        if op is not None:
            self._set(target, op, line)
        elif self._read(value) != target:
            self.put(f"{target} = {self._read(value)}", line)

    def _set(self, target: str, op: Op, line: int) -> None:
        """`target = ...`, or `target += ...` where that is the same."""
        text = self.expression(op)
        if op.kind in AUGMENTED and op.out is not None and all(a is not None and a.type == op.out.type for a in op.args):
            first, second = (self._read(a) for a in op.args)
            if first == target:
                self.put(f"{target} {AUGMENTED[op.kind]} {second}", line)
                return
        self.put(f"{target} = {text}", line)

    def _move(self, targets: Sequence[Value], sources: Sequence[Operand], line: int = 0) -> None:
        """Several assignments at once: one after the other where none of them reads what an earlier one writes."""
        left = [(t, s) for t, s in zip(targets, sources, strict=True) if self.name(t) != self.name(s)]
        while left:
            for k, (t, s) in enumerate(left):
                others = [x for j, (_, x) in enumerate(left) if j != k]
                if self.name(t) not in {self.name(v) for v in self.folding.leaves(others)}:
                    self._assign(self.name(t), s, line)
                    del left[k]
                    break
            else:
                self.put(f"{', '.join(self.name(t) for t, _ in left)} = {', '.join(within(self.name(s), CHOICE) for _, s in left)}", line)
                return

    def _if(self, item: If, word: str = "if") -> None:
        condition = self.name(item.condition)
        self.comment(item.line)
        then = self._branch(item.then, item.results, item.then_yields)
        inner = [x for x in item.orelse.items if not self._silent(x)]
        if then and len(inner) == 1 and isinstance(inner[0], If) and not self._moves(item.results, item.else_yields):
            self.put(f"{word} {condition}:")
            self.lines += then
            self._if(inner[0], "elif")
            return
        orelse = self._branch(item.orelse, item.results, item.else_yields)
        if not then and word == "if":
            condition, then, orelse = Expression(f"not {within(condition, NOT)}"), orelse, []
        if then or orelse:
            self.put(f"{word} {condition}:")
            self.lines += then or ["    " * (self.depth + 1) + "pass"]
        if orelse:
            self.put("else:")
            self.lines += orelse

    def _branch(self, block: Block, targets: Sequence[Value], sources: Sequence[Operand]) -> list[str]:
        """The lines of a branch; none if it does nothing."""
        outside, self.lines = self.lines, []
        self.depth += 1
        self._block(block)
        self._move(targets, sources)
        self.depth -= 1
        found, self.lines = self.lines, outside
        return found

    def _silent(self, item: Item) -> bool:
        return isinstance(item, Op) and item.out is not None and (item.out in self.folding.folded or item.out in self.folding.dead)

    def _moves(self, targets: Sequence[Value], sources: Sequence[Operand]) -> bool:
        return any(self.name(t) != self.name(s) for t, s in zip(targets, sources, strict=True))

    def _for(self, item: For) -> None:
        self._move(item.params, item.inits, item.line)
        lo, hi, step = (self.name(x) for x in (item.lo, item.hi, item.step))
        bounds = [hi] if lo == "0" and step == "1" else [lo, hi] if step == "1" else [lo, hi, step]
        counted = self._count(item)
        several = item.parallel and not item.params and not counted and step == "1"
        self.put(f"for {self.name(item.iv)} in {self.parallel() if several else 'range'}({', '.join(bounds)}):", item.line)
        with self.block():
            self._iteration(item, counted)

    def parallel(self) -> Expression:
        """The name of numba's parallel range."""
        return Expression("prange")

    def _count(self, item: For | While) -> bool:
        if item.count is None or not self.folding.uses[item.count]:
            return False
        self.put(f"{self.name(item.count)} = 0", item.line)
        return True

    def _iteration(self, item: For | While, counted: bool) -> None:
        if counted and item.count is not None:
            self.put(f"{self.name(item.count)} += 1")
        self._block(item.body)
        self._move(item.params, item.yields)
        if isinstance(item.stop, Value):
            self.put(f"if {self.name(item.stop)}:")
            with self.block():
                self.put("break")

    def _while(self, item: While) -> None:
        self._move(item.params, item.inits, item.line)
        counted = self._count(item)
        simple = all(self._silent(x) for x in item.head.items)
        self.put(f"while {self.name(item.condition) if simple else 'True'}:", item.line)
        with self.block():
            if not simple:
                self.entering(item)
                self._block(item.head)
                self.put(f"if not {within(self.name(item.condition), NOT)}:")
                with self.block():
                    self.leaving(item)
                    self.put("break")
            self._iteration(item, counted)

    def entering(self, item: While) -> None:
        """Called where the head of a loop is about to be written."""

    def leaving(self, item: While) -> None:
        """Called where a loop ends because its condition is false."""


def raising(text: str) -> str:
    """The user's `raise` where it says all there is to say; otherwise an error that stands for it."""
    try:
        (statement,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return f"raise RuntimeError({text!r})"
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    plain = isinstance(statement, ast.Raise) and statement.exc is not None and statement.cause is None
    if plain and all(isinstance(getattr(builtins, n, None), type) for n in names):
        return text.strip()
    return f"raise RuntimeError({text!r})"
