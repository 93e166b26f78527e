"""Statements: they keep what each name holds, and emit what has an effect."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from fnad.errors import DTypeError
from fnad.loops import indexing, operators
from fnad.loops.arrays import arrayish, materialise, store_into
from fnad.loops.builder import NotNumeric, const, is_array, is_scalar, is_tuple
from fnad.loops.expressions import Local, Pending
from fnad.loops.flow import Flow
from fnad.loops.ir import INT, Block, Const, For, Value, While
from fnad.loops.joins import Undefined, describe, rebuild
from fnad.loops.jumps import VALUE, Branch, Flag, Loop, Plain, Result, Statement, assigned
from fnad.loops.picking import change_masked
from fnad.loops.sequences import Range, sequence
from fnad.loops.source import Static


class Statements(Flow):
    """Executes statements."""

    def run(self, statements: Sequence[Statement]) -> None:
        for s in statements:
            outer, self.node = self.node, s.node
            env = self.frame.env
            try:
                self._run_one(s)
            except NotNumeric as error:
                self.fail(f"Here must be {error.needed}", got={"value": describe(error.found)}, kind=DTypeError)
            except Pending:
                self.frame.env = env
                env.update({name: Undefined(name) for name in assigned([s])})
            self.node = outer

    def _run_one(self, s: Statement) -> None:
        env = self.frame.env
        if isinstance(s, Plain):
            method = getattr(self, "run_" + type(s.node).__name__, None)
            if method is None:
                self.fail(f"The statement `{type(s.node).__name__.lower()}` is not supported in a differentiable loop function")
            method(s.node)
        elif isinstance(s, Flag):
            env[s.name] = const(s.value)
        elif isinstance(s, Result):
            env[VALUE] = Static(None) if s.node.value is None else self._kept(self.evaluate(s.node.value))
        elif isinstance(s, Branch):
            self._branch(s)
        elif isinstance(s.node, ast.For):
            self._for(s, s.node)
        else:
            self._while(s, s.node)

    def _kept(self, x: Any, name: str = "t") -> Any:
        """A value as a name holds it: in memory."""
        if is_tuple(x):
            return rebuild(x, [self._kept(item) for item in x])
        if isinstance(x, Value) and x.name.startswith("t_") and name != "t":
            x.name = name + x.name[1:]
        return materialise(self, x, name)

    def run_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)

    def run_Pass(self, node: ast.Pass) -> None:
        pass

    def run_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.fail("Only names can be deleted")
            self.frame.env[target.id] = Undefined(target.id)

    def run_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.fail("A decorated function inside a loop function", fix="define it outside")
        self.frame.env[node.name] = Static(Local(node, self.frame))

    def run_Assert(self, node: ast.Assert) -> None:
        test = self.truth_of(node.test)
        self.when(self.scalar("not", test), lambda: self._raise(node))

    def run_Raise(self, node: ast.Raise) -> None:
        self._raise(node)

    def _raise(self, node: ast.stmt) -> None:
        self.emit("raise", (), text=ast.unparse(node))

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        if len(node.targets) > 1:
            value = self._kept(value)
        for target in node.targets:
            self.assign(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def assign(self, target: ast.expr, value: Any) -> None:
        self.node = target
        if isinstance(target, ast.Name):
            if isinstance(value, Range):
                self.fail("A range or another iterator under a name", fix="write it in the for statement")
            self.frame.env[target.id] = self._kept(value, target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Subscript):
            owner, index = self._target(target)
            self.node = target
            indexing.write(self, owner, index, value)
        else:
            self.fail("This cannot be assigned to in a differentiable loop function", fix="use arrays and tuples")

    def _target(self, target: ast.Subscript) -> tuple[Value, Any]:
        owner = self.evaluate(target.value)
        if not is_array(owner):
            self.fail("Only the elements of arrays can be assigned", got={"value": describe(owner)}, kind=DTypeError)
        return owner, self.evaluate(target.slice)

    def _unpack(self, targets: list[ast.expr], value: Any) -> None:
        if arrayish(value):
            array = materialise(self, value)
            items: list[Any] = [indexing.read(self, array, const(k)) for k in range(len(targets))]
        elif is_tuple(value):
            items = [self._kept(item) for item in value]
        else:
            self.fail("Only tuples and arrays can be unpacked", got={"value": describe(value)})
        starred = [k for k, t in enumerate(targets) if isinstance(t, ast.Starred)]
        if starred:
            at, after = starred[0], len(targets) - starred[0] - 1
            items = [*items[:at], tuple(items[at : len(items) - after]), *items[len(items) - after :]]
        if len(items) != len(targets):
            self.fail(f"{len(targets)} names for {len(items)} values")
        for target, item in zip(targets, items, strict=True):
            self.assign(target.value if isinstance(target, ast.Starred) else target, item)

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.eval_Name(target)
            new = self._combine(node.op, old, self.evaluate(node.value))
            if is_array(old):
                store_into(self, old, new)
            else:
                self.frame.env[target.id] = self._kept(new, target.id)
        elif isinstance(target, ast.Subscript):
            owner, index = self._target(target)
            value = self.evaluate(node.value)
            if is_scalar(value) and change_masked(self, owner, index, lambda old: self._combine(node.op, old, value)):
                return
            old = indexing.read(self, owner, index)
            new = self._combine(node.op, old, value)
            picked = any(map(arrayish, index if is_tuple(index) else (index,)))
            if is_array(old) and not picked:  # a view
                store_into(self, old, new)
            else:
                indexing.write(self, owner, index, new)
        else:
            self.fail("This cannot be assigned to in a differentiable loop function", fix="use arrays and tuples")

    def _combine(self, op: ast.operator, old: Any, value: Any) -> Any:
        if isinstance(op, ast.MatMult):
            self.fail("`@=` is not supported", fix="write x[:] = x @ y")
        if is_tuple(old) and is_tuple(value) and isinstance(op, ast.Add):
            return (*old, *value)
        return operators.binary(self, operators.BINARY[type(op)], old, value)

    # control flow

    def _branch(self, s: Branch) -> None:
        test = self.truth_of(s.test)
        names = sorted((assigned(s.then) | assigned(s.orelse)) & s.live)
        self.branch(test, lambda: self.run(s.then), lambda: self.run(s.orelse), names)

    def _for(self, s: Loop, node: ast.For) -> None:
        over = self.evaluate(node.iter)
        if is_tuple(over):
            self._unroll(s, node, list(over))
            return
        over = sequence(self, over)
        iv = self.value(INT, node.target.id if isinstance(node.target, ast.Name) else "i")

        if self.is_positive(over.lo) and isinstance(over.step, Const) and over.step.value > 0:
            self.positive.add(iv)

        def start() -> None:
            self.assign(node.target, over.item(iv))
            self.run(s.body)

        loop = For(iv, over.lo, over.hi, over.step, Block(), parallel=over.parallel, line=self.line)
        self._carry(s, loop, start)

    def _unroll(self, s: Loop, node: ast.For, items: list[Any]) -> None:
        if not items:
            return
        self.assign(node.target, items[0])
        self.run(s.body)
        stop = const(False) if s.stop is None else self.frame.env.get(s.stop, const(False))
        names = sorted(assigned([s]) & (s.head | s.live))
        self.branch(stop, lambda: None, lambda: self._unroll(s, node, items[1:]), names)

    def _while(self, s: Loop, node: ast.While) -> None:
        loop = While(Block(), const(True), Block(), [], [], [], [], self.value(INT, "count"), line=self.line)

        def head(start: Callable[[], None]) -> None:
            with self.inside(Block()) as block:
                start()
                test = self.truth_of(node.test)
            loop.head, loop.condition = block, test

        self._carry(s, loop, lambda: self.run(s.body), head)
