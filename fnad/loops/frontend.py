"""From a Python function and the types of its arguments to an `ir.Function`: an interpreter of its statements that emits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fnad.errors import ArgumentError, DTypeError, UnsupportedError
from fnad.loops import indexing, operators
from fnad.loops.arrays import arrayish, materialise, store_into
from fnad.loops.builder import const, is_array, is_tuple
from fnad.loops.cleanup import clean, written
from fnad.loops.expressions import Expressions, Frame, Pending, Sequence_
from fnad.loops.ir import INT, Array, Block, Const, For, Function, Operand, Scalar, Type, Value, While
from fnad.loops.joins import (
    Conflict,
    Undefined,
    adapt,
    describe,
    fresh,
    leaves,
    mark_frozen,
    measure,
    outline,
    rebuild,
    types,
    unify,
)
from fnad.loops.jumps import VALUE, Branch, Flag, Loop, Plain, Result, Statement, assigned, lower
from fnad.loops.source import Source, Static, error_at, parse

__all__ = ["Static", "build"]

DEEPEST = 50
"""Calls inside calls, before a recursion is suspected."""


def build(function: Callable[..., Any], types: Sequence[Any], name: str | None = None) -> Function:
    """The typed form of a loop function.

    Args:
        function: A plain Python function, or a compiled one with `py_func`.
        types: One entry for each positional parameter: an `ir.Scalar` or `ir.Array`, a tuple or namedtuple of those, or
            `Static(object)` for functions, None and strings.
        name: The name of the result; the function's own where it is None.

    Raises:
        UnsupportedError, DTypeError, ShapeError: What cannot be differentiated, with the user's line and what to write instead.
    """
    function = getattr(function, "py_func", function)
    front = Frontend()
    source = parse(function)
    args: list[Value] = []
    names = [a.arg for a in source.node.args.posonlyargs + source.node.args.args]
    names += [f"arg{k}" for k in range(len(names), len(types))]
    given = [_argument(front, label, kind, args) for label, kind in zip(names, types, strict=False)]
    if len(given) != len(types):
        raise ArgumentError(f"{source.name} has {len(names)} parameters", got={"types": types})
    body = front.block
    value = front.run_function(source.node, source, None, given, {})
    returns: list[Operand] = []
    template = _template(front, value, returns)
    result = Function(name or source.name, args, body, returns, template, source=(source.file, source.name))
    result.captured = list(front.captured.values())
    clean(result)
    result.written = written(result)
    return result


def _argument(front: Frontend, name: str, kind: Any, args: list[Value]) -> Any:
    if isinstance(kind, Static):
        return kind if isinstance(kind.object, str | bytes) else front.lift(kind.object, name)
    if isinstance(kind, Scalar | Array):
        value = front.value(kind, name)
        if isinstance(kind, Array):
            front.roots[value] = frozenset({("argument", len(args))})
            front.measure(value)
        args.append(value)
        return value
    if isinstance(kind, tuple):
        return rebuild(kind, [_argument(front, f"{name}_{k}", item, args) for k, item in enumerate(kind)])
    raise ArgumentError("The type of an argument is an ir.Scalar, an ir.Array, a tuple of types or a Static", got={name: kind})


def _template(front: Frontend, value: Any, returns: list[Operand]) -> Any:
    if is_tuple(value):
        return rebuild(value, [_template(front, item, returns) for item in value])
    if isinstance(value, Static):
        if value.object is not None:
            raise UnsupportedError("A loop function returns numbers, arrays and tuples of them", got={"returned": describe(value)})
        return None
    returns.append(value)
    return len(returns) - 1


class Frontend(Expressions):
    """Executes statements: keeps what each name holds, and turns control flow into regions."""

    # functions

    def run_function(
        self, node: ast.FunctionDef | ast.Lambda, source: Source, parent: Frame | None, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        frame = Frame(source, {}, parent)
        self._bind(node, frame, args, keywords)
        statements = getattr(node, "fnad_statements", None)
        if statements is None:

            def refuse(where: ast.AST, rule: str, fix: str) -> NoReturn:
                raise error_at(source.file, source.name, where, rule, fix=fix)

            statements = node.fnad_statements = lower(node, refuse)  # type: ignore[union-attr]
        before = getattr(self, "frame", None), self.source, self.node
        self.frame, self.source = frame, source
        self.node = node
        self.run(statements)
        value = frame.env.get(VALUE, Static(None))
        if isinstance(value, Conflict):
            self._read("the result", Conflict("the result", value.first, value.second))
        self.frame, self.source, self.node = before  # type: ignore[assignment]
        return Static(None) if isinstance(value, Undefined) else value

    def _bind(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> None:
        """Give the parameters their arguments."""
        spec = node.args
        names = [a.arg for a in spec.posonlyargs + spec.args]
        env, left = frame.env, dict(keywords)
        env.update(zip(names, args, strict=False))
        if spec.vararg:
            env[spec.vararg.arg] = tuple(args[len(names) :])
        elif len(args) > len(names):
            self.fail(f"{frame.source.name} takes {len(names)} arguments", got={"given": len(args)}, kind=ArgumentError)
        defaults = self._defaults(node, frame, names)
        for name in [*names[len(args) :], *(a.arg for a in spec.kwonlyargs)]:
            if name in left:
                env[name] = left.pop(name)
            elif name in defaults:
                env[name] = defaults[name]
            else:
                self.fail(f"{frame.source.name} misses its argument {name}", kind=ArgumentError)
        if left or spec.kwarg:
            self.fail(f"{frame.source.name} has no parameter {next(iter(left), '**')}", kind=ArgumentError)

    def _defaults(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, names: list[str]) -> dict[str, Any]:
        spec = node.args
        if frame.parent is not None:  # a local function: its defaults stand in the text
            found = {n: self.evaluate(d) for n, d in zip(names[::-1], spec.defaults[::-1], strict=False)}
            pairs = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            return {**found, **{a.arg: self.evaluate(d) for a, d in pairs if d is not None}}
        function = frame.source.function
        given = function.__defaults__ or ()
        found = {n: self.lift(d, n) for n, d in zip(names[::-1], given[::-1], strict=False)}
        return {**found, **{n: self.lift(d, n) for n, d in (function.__kwdefaults__ or {}).items()}}

    def call_user(self, target: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        if getattr(target, "derivative_rule", None) is not None:
            return self._opaque(target, args)
        if not hasattr(target, "py_func"):
            self.fail(
                f"The function {getattr(target, '__name__', target)} cannot be differentiated inside a loop function",
                fix="decorate it with @fnad.njit, or register its derivative",
            )
        source = parse(target.py_func)
        return self.inline(source.node, source, None, args, keywords)

    def _opaque(self, target: Any, args: list[Any]) -> Any:
        for x in args:
            operators.check_numbers(self, x)
        return self.emit("opaque", [materialise(self, x) for x in args], Scalar(np.dtype(np.float64)), function=target)

    def inline(
        self, node: ast.FunctionDef | ast.Lambda, source: Source, parent: Frame | None, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        if any(call is source.function for call, inner, _ in self.calls if inner is node) or len(self.calls) > DEEPEST:
            self.fail(f"{source.name} calls itself; recursion cannot be differentiated", fix="write it as a loop")
        args = [materialise(self, x) for x in args]
        keywords = {k: materialise(self, x) for k, x in keywords.items()}
        self.calls.append((source.function, node, self.node))
        try:
            return self.run_function(node, source, parent, args, keywords)
        finally:
            self.calls.pop()

    # statements

    def run(self, statements: Sequence[Statement]) -> None:
        for s in statements:
            outer, self.node = self.node, s.node
            env = self.frame.env
            try:
                self._run_one(s)
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
        self.frame.env[node.name] = self.eval_Lambda(node)  # type: ignore[arg-type]

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
            if isinstance(value, Sequence_):
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
            old = self.eval_Name(target)  # type: ignore[arg-type]
            new = self._combine(node.op, old, self.evaluate(node.value))
            if is_array(old):
                store_into(self, old, new)
            else:
                self.frame.env[target.id] = self._kept(new, target.id)
        elif isinstance(target, ast.Subscript):
            owner, index = self._target(target)
            old = indexing.read(self, owner, index)
            new = self._combine(node.op, old, self.evaluate(node.value))
            if is_array(old):
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

    def branch(self, test: Operand, then: Callable[[], None], orelse: Callable[[], None], names: list[str]) -> None:
        """`if test: then() else: orelse()`, where they may bind `names`."""
        if isinstance(test, Const):
            (then if test.value else orelse)()
            return
        before = self.frame.env
        blocks, envs = [], []
        for side in (then, orelse):
            self.frame.env = dict(before)
            with self.inside(Block()) as block:
                side()
            blocks.append(block)
            envs.append(self.frame.env)
        self.frame.env = before
        shapes, found = [], []
        for name in names:
            sides = [env.get(name, Undefined(name)) for env in envs]
            if self._same_value(*sides):
                before[name] = sides[0]
                continue
            shape = unify(name, *[outline(self, x) for x in sides])
            if not types(shape):
                before[name] = shape
                continue
            shapes.append((name, shape))
            found.append(sides)
        joined = self._join_names(test, shapes, blocks, found)
        before.update(joined)

    def _same_value(self, x: Any, y: Any) -> bool:
        return x is y or (isinstance(x, Const) and isinstance(y, Const) and x.type == y.type and repr(x.value) == repr(y.value))

    def _join_names(self, test: Operand, shapes: list[tuple[str, Any]], blocks: list[Block], found: list[list[Any]]) -> dict[str, Any]:
        flags = {
            name: test if sides[0].value else self.scalar("not", test)
            for (name, _), sides in zip(shapes, found, strict=True)
            if all(isinstance(x, Const) and isinstance(x.value, bool) for x in sides)
        }
        kept = [(item, sides) for item, sides in zip(shapes, found, strict=True) if item[0] not in flags]
        whole = tuple(shape for (_, shape), _ in kept)
        sides = [tuple(pair[k] for _, pair in kept) for k in (0, 1)]
        values: dict[str, Any] = dict(flags)
        if any(block.items for block in blocks) or kept:
            named = [name for (name, _), _ in kept]
            values.update(zip(named, self._join_named(test, named, whole, blocks, sides), strict=True))
        return values

    def _join_named(
        self, test: Operand, names: list[str], whole: tuple[Any, ...], blocks: list[Block], sides: list[Any]
    ) -> tuple[Any, ...]:
        out = self.join(test, whole, blocks, sides, "t")
        for name, item in zip(names, out, strict=True):
            self._rename(item, name)
        return out

    def _rename(self, x: Any, name: str) -> None:
        if is_tuple(x):
            for item in x:
                self._rename(item, name)
        elif isinstance(x, Value) and x.name.startswith("t_"):
            x.name = name.strip(".") + x.name[1:]

    def _for(self, s: Loop, node: ast.For) -> None:
        over = self.evaluate(node.iter)
        if is_tuple(over):
            self._unroll(s, node, list(over))
            return
        sequence = self.sequence(over)
        iv = self.value(INT, node.target.id if isinstance(node.target, ast.Name) else "i")

        if self.is_positive(sequence.lo) and isinstance(sequence.step, Const) and sequence.step.value > 0:
            self.positive.add(iv)

        def start() -> None:
            self.assign(node.target, sequence.item(iv))
            self.run(s.body)

        loop = For(iv, sequence.lo, sequence.hi, sequence.step, Block(), parallel=sequence.parallel, line=self.line)
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

    def _carry(self, s: Loop, loop: For | While, body: Callable[[], None], head: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Build a loop: again and again, until what its names hold at the start of an iteration is what they hold at its end."""
        names = sorted(assigned([s]) & (s.head | s.live))
        before = self.frame.env
        inits = tuple(before.get(name, Undefined(name)) for name in names)
        shape = tuple(outline(self, x) for x in inits)
        outer_pending, self.pending = self.pending, None
        while True:
            self.pending = None
            params = tuple(fresh(self, name, part) for name, part in zip(names, shape, strict=True))
            self.frame.env = {**before, **dict(zip(names, params, strict=True))}
            self.guessing += 1
            try:
                block, ends = self._iteration(body, head, names, lambda: measure(self, shape, params))
            finally:
                self.guessing -= 1
            found = tuple(unify(n, a, outline(self, x)) for n, a, x in zip(names, shape, ends, strict=True))
            if found == shape:
                break
            shape = found
        if self.pending and not self.guessing:
            name, self.node = self.pending
            self.fail(f"The name {name} is read before anything is assigned to it", fix="assign to it before the loop")
        self.pending = self.pending or outer_pending
        stop = self.frame.env.get(s.stop) if s.stop else None
        loop.stop = None if isinstance(stop, Const) and not stop.value else stop
        self.frame.env = before
        self._close(loop, shape, params, inits, ends, block)
        results = tuple(fresh(self, name, part) for name, part in zip(names, shape, strict=True))
        loop.results = leaves(shape, results)
        mark_frozen(self, loop.results, [loop.inits, loop.yields])
        before.update(zip(names, results, strict=True))
        if isinstance(loop, For) and loop.stop is not None:
            loop.count = self.value(INT, "count")
        self.add(loop)
        measure(self, shape, results)

    def _iteration(
        self, body: Callable[[], None], head: Callable[[Callable[[], None]], None] | None, names: list[str], start: Callable[[], None]
    ) -> tuple[Block, tuple[Any, ...]]:
        if head is not None:
            head(start)
        with self.inside(Block()) as block:
            start()
            body()
        return block, tuple(self.frame.env.get(name, Undefined(name)) for name in names)

    def _close(self, loop: For | While, shape: Any, params: Any, inits: Any, ends: Any, block: Block) -> None:
        kinds: list[Type] = types(shape)
        loop.body = block
        loop.params = leaves(shape, params)
        loop.inits = [adapt(self, leaf, x) for leaf, x in zip(kinds, leaves(shape, inits), strict=True)]  # type: ignore[arg-type]
        with self.inside(block):
            loop.yields = [adapt(self, leaf, x) for leaf, x in zip(kinds, leaves(shape, ends), strict=True)]  # type: ignore[arg-type]
        mark_frozen(self, loop.params, [loop.inits])
