"""Expressions: what each kind of Python expression becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.loops import calls, indexing, makers, operators, products, sequences
from fnad.loops.arrays import Lazy, arrayish, lazy, materialise
from fnad.loops.builder import Builder, NotNumeric, const, dtype_of, is_scalar, is_tuple
from fnad.loops.ir import BOOL, INT, Array, Block, Const, If, Operand, Value
from fnad.loops.joins import Conflict, Undefined, adapt, describe, fresh, leaves, measure, outline, rebuild, types, unify
from fnad.loops.picking import Slice
from fnad.loops.source import Source, Static
from fnad.loops.tables import count


@dataclass(eq=False)
class Bound:
    """A method of an array that is about to be called."""

    owner: Any
    name: str


@dataclass(eq=False)
class Local:
    """A function defined inside a loop function, with the names that it sees there."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame


@dataclass(eq=False)
class Frame:
    """A call of a function: its text and what its names hold."""

    source: Source
    env: dict[str, Any] = field(default_factory=dict)
    parent: Frame | None = None


class Pending(Exception):
    """A name is read whose type is known only after the loop's body has been seen once."""


class Expressions(Builder):
    """Evaluates expressions: to operands, tuples, array expressions and static objects."""

    frame: Frame
    guessing = 0
    pending: tuple[str, ast.AST | None] | None = None

    def evaluate(self, node: ast.expr) -> Any:
        outer, self.node = self.node, node
        method = getattr(self, "eval_" + type(node).__name__, None)
        if method is None:
            self.fail(f"`{type(node).__name__}` is not supported in a differentiable loop function", fix="write it with loops and arrays")
        try:
            return method(node)
        except NotNumeric as error:
            self.fail(f"Here must be {error.needed}", got={"value": describe(error.found)}, kind=DTypeError)
        finally:
            self.node = outer

    def number(self, node: ast.expr) -> Operand:
        x = self.evaluate(node)
        if not is_scalar(x):
            self.fail("A number is needed here", got={"value": describe(x)}, kind=DTypeError)
        return x

    def truth_of(self, node: ast.expr) -> Operand:
        """An expression as a condition."""
        x = self.evaluate(node)
        outer, self.node = self.node, node
        if isinstance(x, Static):
            return const(bool(x.object))
        if is_tuple(x):
            return const(len(x) > 0)
        if not is_scalar(x):
            self.fail("The truth of an array", got={"value": describe(x)}, fix="use np.any(...) or np.all(...)", kind=DTypeError)
        x = self.truth(x)
        self.node = outer
        return x

    # names and constants

    def eval_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        return const(value) if isinstance(value, bool | int | float | complex) else Static(value)

    def eval_Name(self, node: ast.Name) -> Any:
        frame: Frame | None = self.frame
        while frame is not None:
            if node.id in frame.env:
                return self._read(node.id, frame.env[node.id])
            last, frame = frame, frame.parent
        try:
            return self.lift(last.source.lookup(node.id), node.id)
        except (KeyError, ValueError):
            self.fail(f"The name {node.id} is not defined here", fix="assign to it on every path that leads here")

    def _read(self, name: str, x: Any) -> Any:
        if isinstance(x, Undefined):
            if self.guessing:
                self.pending = self.pending or (name, self.node)
                raise Pending
            self.fail(f"The name {name} is read before anything is assigned to it", fix="assign to it on every path that leads here")
        if isinstance(x, Conflict):
            self.fail(
                f"{x.name} holds values of different kinds on the paths that lead here",
                got={"on one path": x.first, "on another": x.second},
                fix="use one name for each kind",
                kind=DTypeError,
            )
        return x

    def lift(self, obj: Any, name: str = "t") -> Any:
        """An object of the user's module or closure as a value: numbers and arrays are constants."""
        if isinstance(obj, bool | int | float | complex) and not isinstance(obj, np.generic):
            return const(obj)
        if isinstance(obj, np.generic) and obj.dtype.kind in "biufc":
            return const(obj.item(), obj.dtype)
        if isinstance(obj, np.ndarray):
            return self._capture(obj, name)
        if isinstance(obj, tuple):
            return rebuild(obj, [self.lift(item, name) for item in obj])
        return Static(obj)

    def _capture(self, array: np.ndarray[Any, Any], name: str) -> Any:
        if id(array) not in self.captured:
            if array.dtype.kind not in "biufc":
                self.fail(f"Arrays of dtype {array.dtype} are not supported", kind=DTypeError)
            if not array.ndim:
                return const(array.item(), array.dtype)
            value = self.value(Array(array.dtype, array.ndim), name)
            self.captured[id(array)] = (value, array)
            self.roots[value] = frozenset({("captured", id(array))})
            self.shapes[value] = [const(n) for n in array.shape]
        return self.captured[id(array)][0]

    # structures

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.spread(node.elts))

    def eval_List(self, node: ast.List) -> Any:
        return tuple(self.spread(node.elts))

    def spread(self, nodes: Sequence[ast.expr]) -> list[Any]:
        """The values of expressions, with starred ones taken apart."""
        out: list[Any] = []
        for k, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                items = self.evaluate(node.value)
                if not is_tuple(items):
                    self.fail("Only a tuple can be starred", got={"value": describe(items)})
                out += items
            else:
                out.append(self.evaluate(node))
            if any(isinstance(x, Lazy) for x in out) and any(map(self._calls_user_code, nodes[k + 1 :])):
                out = [materialise(self, x) for x in out]
        return out

    def _calls_user_code(self, node: ast.AST) -> bool:
        """Whether an expression may change arrays (by calling a function that does)."""
        return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) for n in ast.walk(node))

    def eval_ListComp(self, node: ast.ListComp) -> Any:
        """A list that becomes an array; one over a tuple is a tuple."""
        if len(node.generators) > 1 or node.generators[0].ifs:
            self.fail("A list comprehension with `if` or several `for`", fix="fill an array in a loop")
        target, over = node.generators[0].target, self.evaluate(node.generators[0].iter)
        kept = self.frame.env
        try:
            self.frame.env = dict(kept)
            if is_tuple(over):
                return tuple(self._with(target, item, node.elt) for item in over)
            return self._listed(target, sequences.counted(self, sequences.sequence(self, over)), node.elt)
        finally:
            self.frame.env = kept

    def _with(self, target: ast.expr, item: Any, node: ast.expr) -> Any:
        self.assign(target, item)
        return self.evaluate(node)

    def _listed(self, target: ast.expr, over: sequences.Range, node: ast.expr) -> makers.Listed:
        with self.inside(Block()):  # only to learn the type
            first = self._with(target, over.item(self.value(INT, "i")), node)
        if not is_scalar(first):
            self.fail(
                "The elements of a list comprehension must be numbers", got={"element": describe(first)}, fix="fill an array in a loop"
            )
        out = self.alloc([over.hi], dtype_of(first))

        def body(i: Value, _: list[Operand]) -> list[Operand]:
            self.store(out, [i], self._with(target, over.item(i), node))
            return []

        self.loop(over.hi, body)
        return makers.Listed(out)

    def assign(self, target: ast.expr, value: Any) -> None:
        raise NotImplementedError

    def eval_Slice(self, node: ast.Slice) -> Slice:
        bounds = []
        for part in (node.lower, node.upper, node.step):
            x = None if part is None else self.evaluate(part)
            x = None if isinstance(x, Static) and x.object is None else x
            if x is not None and (not is_scalar(x) or dtype_of(x).kind not in "iu"):
                self.fail("The bounds of a slice are integers", got={"bound": describe(x)}, kind=DTypeError)
            bounds.append(x)
        if isinstance(bounds[2], Const) and bounds[2].value == 1:
            bounds[2] = None
        if isinstance(bounds[0], Const) and bounds[0].value == 0 and bounds[2] is None:
            bounds[0] = None
        return Slice(*bounds)

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Static:
        return Static(ast.unparse(node))

    def eval_Lambda(self, node: ast.Lambda) -> Static:
        return Static(Local(node, self.frame))

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        if is_tuple(owner):
            return self._item_of_tuple(owner, index)
        if not arrayish(owner):
            self.fail("Only arrays and tuples can be indexed", got={"value": describe(owner)}, kind=DTypeError)
        return indexing.read(self, owner, index)

    def _item_of_tuple(self, owner: tuple[Any, ...], index: Any) -> Any:
        if isinstance(index, Slice):
            bounds = [None if x is None else x.value if isinstance(x, Const) else self._static_index() for x in index.bounds]
            return tuple(owner)[slice(*bounds)]
        if is_scalar(index) and dtype_of(index).kind in "iu" and all(map(is_scalar, owner)) and owner and not isinstance(index, Const):
            return self._picked(owner, index)
        if not isinstance(index, Const) or dtype_of(index).kind not in "iu":
            self._static_index()
        if not -len(owner) <= index.value < len(owner):
            self.fail(f"Index {index.value} of a tuple of {len(owner)} items")
        return owner[index.value]

    def _picked(self, owner: tuple[Any, ...], index: Operand) -> Operand:
        """The item of a tuple of numbers at an index that is known when the program runs."""
        dtype = operators.common(*map(dtype_of, owner))
        items = [self.cast(item, dtype) for item in owner]
        behind = self.scalar("add", index, const(len(owner)), dtype=np.int64)
        number = self.scalar("select", self.scalar("lt", index, const(0)), behind, index, dtype=np.int64)
        inside = self.all(self.scalar("ge", number, const(0)), self.scalar("lt", number, const(len(owner))))
        self.when(self.scalar("not", inside), lambda: self.emit("raise", (), text="raise IndexError('tuple index out of range')"))
        found = items[0]
        for k, item in enumerate(items[1:], 1):
            found = self.scalar("select", self.scalar("eq", number, const(k)), item, found, dtype=dtype)
        return found

    def _static_index(self) -> Any:
        self.fail("The index of a tuple must be a literal number", fix="use an array, or loop over the tuple itself")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.evaluate(node.value)
        name = node.attr
        if isinstance(owner, Static):
            if isinstance(owner.object, ModuleType) or hasattr(owner.object, name):
                try:
                    return self.lift(getattr(owner.object, name), name)
                except AttributeError:
                    self.fail(f"{owner.object.__name__} has no {name}")
        elif is_tuple(owner):
            if name in getattr(owner, "_fields", ()):
                return getattr(owner, name)
        elif arrayish(owner):
            return self._of_array(owner, name)
        elif is_scalar(owner) and name in ("real", "imag"):
            return operators.function(self, name, owner)
        elif is_scalar(owner) and name in ("conj", "conjugate", "item"):
            return Bound(owner, name)
        return self.fail(f"The attribute {name} of {describe(owner)} is not supported")

    def _of_array(self, x: Any, name: str) -> Any:
        if name == "shape":
            return tuple(lazy(self, x).sizes)
        if name == "ndim":
            return const(x.type.ndim)
        if name == "size":
            return count(self, lazy(self, x).sizes)
        if name == "dtype":
            return Static(x.type.dtype)
        if name == "T":
            return calls.METHODS["transpose"](self, x)
        if name in ("real", "imag"):
            return operators.function(self, name, x)
        if name in calls.METHODS:
            return Bound(x, name)
        return self.fail(f"The attribute {name} of an array is not supported in a differentiable loop function")

    # operators

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        x, y = self.spread([node.left, node.right])
        if isinstance(node.op, ast.MatMult):
            return products.dot(self, x, y)
        if is_tuple(x) and is_tuple(y) and isinstance(node.op, ast.Add):
            return (*x, *y)
        if is_tuple(x) and isinstance(y, Const) and isinstance(y.value, int) and isinstance(node.op, ast.Mult):
            return tuple(x) * y.value
        return operators.binary(self, operators.BINARY[type(node.op)], x, y)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.scalar("not", self.truth_of(node.operand))
        x = self.evaluate(node.operand)
        if isinstance(node.op, ast.USub):
            return operators.negative(self, x)
        return operators.invert(self, x) if isinstance(node.op, ast.Invert) else x

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._chain(node.values, isinstance(node.op, ast.And))

    def _chain(self, nodes: Sequence[ast.expr], wants: bool) -> Operand:
        """`a and b and ...` (or `or`), of conditions."""
        first = self.truth_of(nodes[0])
        if len(nodes) == 1:
            return first
        if isinstance(first, Const):
            return self._chain(nodes[1:], wants) if first.value == wants else first
        if all(map(cheap, nodes[1:])):
            return self.scalar("and" if wants else "or", first, self._chain(nodes[1:], wants))
        return self._short_circuit(first, wants, lambda: self._chain(nodes[1:], wants))

    def _short_circuit(self, first: Operand, wants: bool, rest: Callable[[], Operand]) -> Operand:
        with self.inside(Block()) as block:
            second = rest()
        out = self.value(BOOL)
        if wants:
            self.add(If(first, block, Block(), [second], [const(False)], [out], self.line))
        else:
            self.add(If(first, Block(), block, [const(True)], [second], [out], self.line))
        return out

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.evaluate(node.left)
        return self._compare(left, list(zip(node.ops, node.comparators, strict=True)))

    def _compare(self, left: Any, rest: list[tuple[ast.cmpop, ast.expr]]) -> Any:
        op, node = rest[0]
        right = self.evaluate(node)
        first = self._pair(op, left, right)
        if len(rest) == 1:
            return first
        if not is_scalar(first):
            self.fail("A chain of comparisons of arrays", fix="combine two comparisons with &")
        if isinstance(first, Const):
            return self._compare(right, rest[1:]) if first.value else first
        if all(cheap(n) for _, n in rest[1:]):
            return self.scalar("and", first, self._compare(right, rest[1:]))
        return self._short_circuit(first, True, lambda: self._compare(right, rest[1:]))

    def _pair(self, op: ast.cmpop, x: Any, y: Any) -> Any:
        if isinstance(op, ast.In | ast.NotIn):
            return self._contains(x, y, isinstance(op, ast.In))
        if isinstance(x, Static) or isinstance(y, Static) or is_tuple(x) or is_tuple(y):
            equal = self._same(x, y)
            return const(equal if isinstance(op, ast.Is | ast.Eq) else not equal)
        kind = operators.COMPARED.get(type(op))
        if kind is None:
            self.fail("`is` compares objects; in a loop function only with None", fix="use ==")
        return operators.binary(self, kind, x, y)

    def _same(self, x: Any, y: Any) -> bool:
        if is_tuple(x) and is_tuple(y):
            return len(x) == len(y) and all(self._same(a, b) for a, b in zip(x, y, strict=True))
        if isinstance(x, Static) and isinstance(y, Static):
            try:
                return bool(x.object is y.object or x.object == y.object)
            except TypeError:
                return False
        if isinstance(x, Const) and isinstance(y, Const):
            return bool(x.value == y.value)
        if isinstance(x, Static) or isinstance(y, Static):
            return False
        return self.fail("Tuples are compared that are not known when the function is compiled", fix="compare their items")

    def _contains(self, x: Any, items: Any, wanted: bool) -> Any:
        if not is_tuple(items):
            self.fail("`in` is supported for tuples")
        found: Any = const(False)
        for item in items:
            found = self.scalar("or", found, self._pair(ast.Eq(), x, item))
        return found if wanted else self.scalar("not", found)

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        test = self.truth_of(node.test)
        if isinstance(test, Const):
            return self.evaluate(node.body if test.value else node.orelse)
        return self.choose(test, lambda: self.evaluate(node.body), lambda: self.evaluate(node.orelse))

    def choose(self, test: Operand, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """One of two values; only the chosen one is computed."""
        found, blocks = [], []
        for side in (then, orelse):
            with self.inside(Block()) as block:
                found.append(materialise(self, side()))
            blocks.append(block)
        shape = unify("value", outline(self, found[0]), outline(self, found[1]))
        if isinstance(shape, Conflict):
            self.fail(
                "The two sides of a conditional expression differ in kind", got={"sides": f"{shape.first}, {shape.second}"}, kind=DTypeError
            )
        return self.join(test, shape, blocks, found, "t")

    def join(self, test: Operand, shape: Any, blocks: list[Block], found: list[Any], name: str) -> Any:
        sides: list[list[Operand]] = []
        for block, x in zip(blocks, found, strict=True):
            with self.inside(block):
                sides.append([adapt(self, leaf, item) for leaf, item in zip(types(shape), leaves(shape, x), strict=True)])
        out = fresh(self, name, shape)
        results = leaves(shape, out)
        self.add(If(test, blocks[0], blocks[1], sides[0], sides[1], results, self.line))
        measure(self, shape, out)
        return out


def cheap(node: ast.expr) -> bool:
    """Whether evaluating an expression is quick and cannot go wrong."""
    if isinstance(node, ast.Name | ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return cheap(node.operand)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and cheap(node.left) and cheap(node.right)
    if isinstance(node, ast.Compare):
        return cheap(node.left) and all(map(cheap, node.comparators))
    if isinstance(node, ast.BoolOp):
        return all(map(cheap, node.values))
    return isinstance(node, ast.Attribute) and cheap(node.value)
