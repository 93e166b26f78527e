"""From equations to loop nests.

Elementwise values and views are not computed where they stand but written into the loops that use them. A value gets
memory of its own where it must be an array (results, operands of kernels behind calls), where it is a reduction, and where
several uses would repeat expensive work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from fnad.compiler import epilogues, lapack
from fnad.compiler.donate import donate
from fnad.compiler.fuse import Fuser
from fnad.compiler.nests import aligned, guarded_product, nest
from fnad.compiler.parallel import split
from fnad.compiler.pauses import set_pauses
from fnad.compiler.program import CODES, Access, Buffer, Foreign, Gemm, Host, Index, Lapack, Loop, Node, Numbers, Store, write_short_extents
from fnad.compiler.simplify import is_uniform
from fnad.compiler.structured import branch, repeat, while_loop
from fnad.compiler.words import lowering
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.core.lowering import Branch, Call, Gather, Iota, Native, Place, Reduce, Repeat, Scalar, Scan, Scatter, View, While
from fnad.kernels.codegen import expr as ex
from fnad.kernels.expressions import find
from fnad.primitives.shape import stop

_DEPTH = 40  # longest chain of equations written into one expression
_FUNCTION = 5  # equations that a function like `exp` counts as
_CHEAP = 8  # operations worth repeating rather than storing
_PRODUCTS = 3  # matrix products that are added up at once: more of them would have to be kept until then
_COSTLY = frozenset({"exp", "log", "tanh", "power", "sin", "cos", "erf", "expit", "log1p", "expm1", "logaddexp", "divide", "sqrt"})
_GROWING = frozenset({"add", "subtract", "multiply", "power", "square", "negative"})
_LARGE = 2.0**62  # results of Python integers up to this are computed in 64 bits


class Schedule:
    """The nodes of a program, in order, with its buffers and numbers."""

    def __init__(self, graph: Graph, parent: Schedule | None = None, home: dict[Var, Buffer] | None = None) -> None:
        self.graph = graph
        self.numbers: Numbers = parent.numbers if parent else Numbers()
        self.buffers: list[Buffer] = parent.buffers if parent else []
        self._counter: itertools.count[int] = parent._counter if parent else itertools.count()
        self.fuser = Fuser()
        self.home: dict[Var, Buffer] = dict(home or {})  # values that have memory
        self.equation: dict[Var, Equation] = {}
        self.word: dict[Var, Any] = {}
        self._memo: dict[Any, Any] = {}
        self._built: dict[Var, Equation] = {}  # what the next store computes
        self.calls: dict[Any, tuple[str, tuple[Any, ...]]] = parent.calls if parent else {}  # expressions as functions of others
        self.loads: dict[str, Access] = {}
        self.checks: list[Any] = []
        self.flag: Buffer = parent.flag if parent else self._buffer(Aval((), np.dtype(np.int64)), "flag")
        self.whole = parent is None
        self._checked: set[Var] = set()
        self.uniform = {v: x.flat[0] for v, x in graph.constants if is_uniform(x)}  # constants that repeat one number

    @classmethod
    def of(cls, graph: Graph, donated: frozenset[int] = frozenset()) -> Schedule:
        """The schedule of a whole program; `donated` are positions of inputs whose memory may be used."""
        self = cls(graph)
        for position, var in enumerate((*graph.inputs, *(v for v, _ in graph.constants))):
            if var not in self.uniform:
                self.home[var] = self._buffer(var.aval, "input", position)
        wanted = {v: k for k, v in reversed(list(enumerate(graph.outputs))) if isinstance(v, Var)}
        self.place_all({v: k for v, k in wanted.items() if v not in self.home and v not in self.uniform})
        for k, v in enumerate(graph.outputs):
            self._finish(k, v)
        self.fuser.contract(self.buffers)
        epilogues.attach(self.nodes, self.fuser)
        split(self.nodes, self.fuser)
        donate(self.nodes, self.buffers, donated, self.fuser)
        epilogues.share_memory(self.nodes, self.buffers, self.fuser)
        write_short_extents(self.nodes)
        set_pauses(self.nodes, self.numbers)
        return self

    def place_all(self, targets: dict[Var, Any], before: Collection[Var] = ()) -> None:
        """Make the nodes of all equations. Some values are wanted in a certain buffer, or as the result of a certain number.

        The values `before` are computed where they stand, because what they read changes later.
        """
        stored = self._choose().union(before)
        for e in self.graph.equations:
            self._place(e, stored, targets)

    @property
    def nodes(self) -> list[Node]:
        return self.fuser.nodes

    def _buffer(self, aval: Aval, kind: str, position: int = -1) -> Buffer:
        b = Buffer(f"b{len(self.buffers)}", aval.shape, aval.dtype, kind, position)
        self.buffers.append(b)
        return b

    # -- which values get memory -----------------------------------------------------------------------------------

    def _choose(self) -> set[Var]:
        """Values to store, besides results."""
        uses: dict[Var, int] = {}
        stored: set[Var] = set()
        cost: dict[Var, int] = {}
        depth: dict[Var, int] = {}
        products: dict[Var, int] = {}  # matrix products that an unstored value keeps alive
        for e in self.graph.equations:
            word = lowering(e)
            for out in e.outputs:
                self.equation[out], self.word[out] = e, word
            operands = [v for v in e.inputs if isinstance(v, Var) and not isinstance(word, Iota)]
            for v in set(operands):
                uses[v] = uses.get(v, 0) + 1
            for v in _read_often(e, word, operands):
                if cost.get(v, 0) > _CHEAP:
                    stored.add(v)
                    cost[v] = 0
            if isinstance(word, Scalar | View | Gather | Iota) and not (isinstance(word, View) and word.index is None):
                out = e.outputs[0]
                costly = e.primitive.name in _COSTLY
                cost[out] = sum(cost.get(v, 0) for v in operands) + (10 if costly else isinstance(word, Scalar))
                if isinstance(word, Gather):
                    stored.update(operands[:1] if isinstance(e.inputs[0], Var) else ())
                    cost[out] = _CHEAP + 1
                depth[out] = (_FUNCTION if costly else 1) + max((depth.get(v, 0) for v in operands), default=0)
                products[out] = sum(1 if isinstance(self.word.get(v), Call) else products.get(v, 0) for v in operands)
                if depth[out] > _DEPTH or (products[out] > _PRODUCTS and e.primitive.name == "add"):
                    stored.add(out)
                    cost[out] = depth[out] = 0
                    products[out] = 1
            else:
                stored.update(e.outputs)
                if not isinstance(word, Reduce | Place | Scatter | Scan) and not (isinstance(word, Call) and word.kernel == "loops"):
                    stored.update(v for v in operands if not self._read_in_place(e, word, v))
        for v, n in uses.items():
            if n > 1 and cost.get(v, 0) > _CHEAP:
                stored.add(v)
        return stored

    def _read_in_place(self, e: Equation, word: Any, v: Var) -> bool:
        """Whether a matrix product can read an operand through a transposition."""
        return isinstance(word, Call) and self._transposed(v) is not None

    def _transposed(self, v: Var) -> Var | None:
        e = self.equation.get(v)
        if e is None or e.primitive.name != "transpose" or not isinstance(e.inputs[0], Var):
            return None
        n = len(v.aval.shape)
        swapped = (*range(n - 2), n - 1, n - 2)
        return e.inputs[0] if n >= 2 and e.params["axes"] == swapped else None

    # -- equations to nodes ----------------------------------------------------------------------------------------

    def _place(self, e: Equation, stored: set[Var], targets: dict[Var, Any]) -> None:
        word, out = self.word[e.outputs[0]], e.outputs[0]
        if isinstance(word, View) and word.alias and (word.index is None or (out in stored and out not in targets)):
            self._alias(e)
            if word.later:
                self.fuser.settle()
            return
        if not any(v in stored or v in targets for v in e.outputs):
            return
        homes = [self._target(v, targets.get(v)) for v in e.outputs]
        if isinstance(word, Scalar | View | Gather | Iota):
            self._pointwise(homes[0], out)
        elif isinstance(word, Place):
            self._parts(homes[0], e, word)
        elif isinstance(word, Scatter):
            self._scatter(homes[0], e, word)
        elif isinstance(word, Scan):
            self._scan(homes[0], e, word)
        elif isinstance(word, Reduce):
            self._reduction(homes[0], e, word)
        elif isinstance(word, Repeat):
            repeat(self, homes, e, word)
        elif isinstance(word, While):
            while_loop(self, homes, e, word)
        elif isinstance(word, Branch):
            branch(self, homes, e, word)
        elif isinstance(word, Call):
            (self._matmul if word.kernel == "gemm" else self._product)(homes[0], e, word.guard)
        elif isinstance(word, Native):
            self._foreign(homes, e, word)
        else:
            inputs = tuple(v if isinstance(v, Literal) else self._in_memory(v) for v in e.inputs)
            native = lapack.kernel(e, self.numbers)
            self.fuser.add(Host(e, inputs, tuple(homes)) if native is None else Lapack(e, inputs, tuple(homes), *native))
        self.home.update(zip(e.outputs, homes, strict=True))

    def _foreign(self, homes: list[Buffer], e: Equation, word: Native) -> None:
        """A call of machine code; its address is a number of the program, so that the text does not depend on it."""
        inputs = []
        for v in e.inputs:
            if isinstance(v, Literal):
                inputs.append(self._buffer(aval_of(v.value), "temp"))
                self._pointwise(inputs[-1], v)
            else:
                inputs.append(self._in_memory(v))
        numbers = tuple(self.numbers.size(n) for b in (*inputs, *homes) for n in b.shape)
        self.fuser.add(Foreign(e, tuple(inputs), tuple(homes), self.numbers.size(word.address()), numbers))

    def _target(self, v: Var, wanted: Buffer | int | None) -> Buffer:
        if isinstance(wanted, Buffer):
            return wanted
        return self._buffer(v.aval, "temp") if wanted is None else self._buffer(v.aval, "output", wanted)

    def _in_memory(self, v: Var) -> Buffer:
        word = self.word.get(v)
        if v not in self.home and isinstance(word, View) and word.alias:
            self._alias(self.equation[v])
        elif v not in self.home:
            home = self._buffer(v.aval, "temp")
            self._pointwise(home, v)
            self.home[v] = home
        return self.home[v]

    def _alias(self, e: Equation) -> None:
        """A reshape: the same memory under another shape."""
        source, out = e.inputs[0], e.outputs[0]
        if isinstance(source, Literal):
            home = self._buffer(out.aval, "temp")
            self._pointwise(home, out)
            self.home[out] = home
            return
        base = self._in_memory(source)
        view = Buffer(base.name, out.aval.shape, base.dtype, base.kind, base.position, base)
        view.shift = base.shift
        self.home[out] = view

    def _finish(self, k: int, v: Var | Literal) -> None:
        """Every result gets an array of its own."""
        if isinstance(v, Var) and v in self.home and self.home[v].kind == "output" and self.home[v].position == k:
            return
        aval = v.aval if isinstance(v, Var) else aval_of(v.value)
        home = self._buffer(aval, "output", k)
        if home.code:
            self._pointwise(home, v)
        else:
            source = v if isinstance(v, Literal) else self.home[v]
            self.fuser.add(Host(Equation(stop, (v,), {}, (), None), (source,), (home,)))

    def _add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.fuser.add(node)

    def _loops(self, shape: Sequence[int]) -> list[Loop]:
        return [Loop(ex.var(f"i{next(self._counter)}", "i64"), n, self.numbers.size(n), []) for n in shape]

    def _pointwise(self, home: Buffer, v: Var | Literal) -> None:
        loops = self._loops(home.shape)
        index = tuple(loop.var for loop in loops)
        self._emit(loops, home, index, ex.cast(self._value(v, index), home.code))

    def _reduction(self, home: Buffer, e: Equation, word: Reduce) -> None:
        source = e.inputs[0]
        shape = source.aval.shape if isinstance(source, Var) else ()
        loops = self._loops(shape)
        kept = [loop for k, loop in enumerate(loops) if k not in word.axis]
        index = tuple(loop.var for loop in kept)
        value = ex.cast(self._value(source, tuple(loop.var for loop in loops)), home.code)
        start = ex.const(word.start, home.code)
        trailing = all(k in word.axis for k in range(len(kept), len(loops)))
        if trailing:
            register = self._buffer(Aval((), home.dtype), "temp")
            inner = nest(loops[len(kept) :], self._stores(register, (), value, word.combine, e))
            done = Store(home, index, ex.var("acc", home.code), {"acc": (register, ())})
            self._add(nest(kept, [Store(register, (), start, {}), *inner, done]))
            return
        lead = min(word.axis)
        self._accumulate(home, start, loops, lead, self._stores(home, index, value, word.combine, e))

    def _accumulate(self, home: Buffer, start: Any, loops: Sequence[Loop], lead: int, body: list[Node]) -> None:
        """Loops that accumulate into an array, whose first `lead` axes are their first ones: there it is begun part by part."""
        rest = self._loops(home.shape[lead:])
        begin = nest(rest, [Store(home, (*(loop.var for loop in loops[:lead]), *(loop.var for loop in rest)), start, {})])
        self._add(nest(loops[:lead], [*begin, *nest(loops[lead:], body)]))

    def _begin(self, home: Buffer, base: Var | Literal | None) -> None:
        """Fill an array with zeros, or with a copy of another, if it is another."""
        if base is not None:
            if isinstance(base, Literal) or self.home.get(base) is not home:
                self._pointwise(home, base)
            return
        loops = self._loops(home.shape)
        self._add(nest(loops, [Store(home, tuple(loop.var for loop in loops), ex.const(0, home.code), {})]))

    def _parts(self, home: Buffer, e: Equation, word: Place) -> None:
        scattered = word.base is None and not word.covered and len(word.parts) == 1
        if not word.covered and not scattered:
            self._begin(home, None if word.base is None else e.inputs[word.base])
        for k, index in word.parts:
            v = e.inputs[k]
            loops = self._loops(v.aval.shape if isinstance(v, Var) else ())
            where = tuple(loop.var for loop in loops)
            value = ex.cast(self._value(v, where), home.code)
            target = tuple(index(where, self.numbers.size))
            if scattered:
                same = [i is j and loop.extent == n for i, j, loop, n in zip(target, where, loops, home.shape, strict=False)]
                body = self._stores(home, target, value, word.combine, e)
                self._accumulate(home, ex.const(0, home.code), loops, [*same, False].index(False), body)
            else:
                self._emit(loops, home, target, value, word.combine, e)

    def _scatter(self, home: Buffer, e: Equation, word: Scatter) -> None:
        self._begin(home, e.inputs[0] if word.base else None)
        v, *indices = e.inputs[word.base :]
        n = len(indices)
        many = np.broadcast_shapes(*(i.aval.shape if isinstance(i, Var) else () for i in indices))
        shape = (*home.shape[: word.axis], *many, *home.shape[word.axis + n :])
        loops = self._loops(shape)
        where = tuple(loop.var for loop in loops)
        at = self._positions(indices, many, where[word.axis : word.axis + len(many)], home.shape[word.axis : word.axis + n])
        index = (*where[: word.axis], *at, *where[word.axis + len(many) :])
        value = ex.cast(self._value(v, aligned(v.aval.shape if isinstance(v, Var) else (), shape, where)), home.code)
        self._emit(loops, home, index, value, word.combine, e)

    def _positions(self, indices: Sequence[Any], many: Sequence[int], where: Index, sizes: Sequence[int]) -> list[Any]:
        """Index arrays as expressions: negative ones wrapped; what is out of bounds is noted and put in bounds."""
        out = []
        for i, n in zip(indices, sizes, strict=True):
            shape = i.aval.shape if isinstance(i, Var) else ()
            k = ex.cast(self._value(i, aligned(shape, many, where)), "i64")
            size = self.numbers.size(n)
            k = ex.select(ex.lt(k, 0), k + size, k)
            bad = ex.or_(ex.lt(k, 0), ex.ge(k, size))
            self.checks.append(bad)
            out.append(ex.select(bad, 0, k))
        return out

    def _emit(self, loops: Sequence[Loop], home: Buffer, index: Index, value: Any, combine: Any = None, e: Equation | None = None) -> None:
        self._add(nest(loops, self._stores(home, index, value, combine, e)))

    def _stores(self, home: Buffer, index: Index, value: Any, combine: str | None = None, e: Equation | None = None) -> list[Node]:
        """A store of what has just been built, after the bounds checks that its expressions gave rise to."""
        checks, self.checks = self.checks, []
        loads, self.loads, self._memo = self.loads, {}, {}
        noted = [Store(self.flag, (), ex.cast(bad, "i64"), loads, "maximum") for bad in checks]
        store = Store(home, index, value, loads, combine)
        store.equations, self._built = (*self._built.values(), *(() if e is None else (e,))), {}
        return [*noted, store]

    def _scan(self, home: Buffer, e: Equation, word: Scan) -> None:
        loops = self._loops(home.shape)
        where = [loop.var for loop in loops]
        if word.reverse:
            where[word.axis] = self.numbers.size(home.shape[word.axis] - 1) - where[word.axis]
        value = ex.cast(self._value(e.inputs[0], tuple(where)), home.code)
        register = self._buffer(Aval((), home.dtype), "temp")
        start = Store(register, (), ex.const(word.start, home.code), {})
        step = self._stores(register, (), value, word.combine, e)
        write = Store(home, tuple(where), ex.var("acc", home.code), {"acc": (register, ())})
        inner = nest([loops[word.axis]], [*step, write])
        self._add(nest([loop for k, loop in enumerate(loops) if k != word.axis], [start, *inner]))

    def _product(self, home: Buffer, e: Equation, guard: tuple[bool, bool]) -> None:
        """A matrix product as loops: vectors, small matrices, odd stacks. The loops follow the matrix through memory."""
        a, b = e.inputs
        na, nb = (len(v.aval.shape) if isinstance(v, Var) else 0 for v in (a, b))
        lead = len(home.shape) - (na > 1) - (nb > 1)
        (k,) = self._loops((a.aval.shape[-1],))  # type: ignore[union-attr]
        loops = self._loops(home.shape)
        index = tuple(loop.var for loop in loops)
        batch = index[:lead]
        rows, columns = (index[lead : lead + 1] if na > 1 else ()), (index[len(index) - 1 :] if nb > 1 else ())

        def entry(v: Any, where: Index) -> Any:
            shape = v.aval.shape
            return ex.cast(
                self._value(v, aligned(shape, (*home.shape[:lead], *shape[-2:])[-len(shape) :] if len(shape) > 1 else shape, where)),
                home.code,
            )

        left = entry(a, (*batch[len(batch) - max(na - 2, 0) :], *rows, k.var))
        right = entry(b, (*batch[len(batch) - max(nb - 2, 0) :], k.var, *columns) if nb > 1 else (k.var,))
        term = guarded_product(left, right, guard)
        across = lead == 0 and len(home.shape) == 1 and (nb > 1) != self._lies_transposed(a if na > 1 else b)
        if across:
            start = self._loops(home.shape)
            self._add(nest(start, [Store(home, (start[0].var,), ex.const(0, home.code), {})]))
            self._add(nest([k, loops[0]], self._stores(home, index, term, "add", e)))
            return
        register = self._buffer(Aval((), home.dtype), "temp")
        inner = nest([k], self._stores(register, (), term, "add", e))
        done = Store(home, index, ex.var("acc", home.code), {"acc": (register, ())})
        self._add(nest(loops, [Store(register, (), ex.const(0, home.code), {}), *inner, done]))

    def _lies_transposed(self, v: Any) -> bool:
        return self._transposed(v) is not None and v not in self.home

    def _matmul(self, home: Buffer, e: Equation, guard: tuple[bool, bool]) -> None:
        left, right = (self._operand(v) for v in e.inputs)
        *lead, m, n = home.shape
        k = e.inputs[0].aval.shape[-1]  # type: ignore[union-attr]
        batch = int(np.prod(lead))
        dims = (batch, m, n, k)
        numbers = tuple(self.numbers.size(d) for d in dims)
        self.fuser.add(Gemm(home, left, right, dims, numbers, guard, e))

    def _operand(self, v: Any) -> tuple[Buffer, bool, bool]:
        """A matrix operand: its memory, whether it is stored transposed, whether it has batch axes."""
        inner = self._transposed(v)
        if v not in self.home and inner is not None:
            return self._in_memory(inner), True, len(v.aval.shape) > 2
        return self._in_memory(v), False, len(v.aval.shape) > 2

    # -- values as expressions -------------------------------------------------------------------------------------

    def _value(self, v: Var | Literal, index: Index) -> Any:
        """The entry of a value at an index, as an expression over loads."""
        if isinstance(v, Literal):
            return self.numbers.literal(v.value, CODES[aval_of(v.value).dtype])
        if v in self.uniform:
            return self.numbers.literal(self.uniform[v], CODES[v.aval.dtype])
        key = v, index
        if key not in self._memo:
            if v in self.home:
                self._memo[key] = self._load(self.home[v], index)
            else:
                self._memo[key] = self._compute(v, index)
                self._built[v] = self.equation[v]
        return self._memo[key]

    def _load(self, home: Buffer, index: Index) -> Any:
        name = f"{home.name}_{len(self.loads)}"
        self.loads[name] = home, index
        return ex.var(name, home.code)

    def _gathered(self, e: Equation, word: Gather, index: Index) -> Any:
        x, *indices = e.inputs
        shape = x.aval.shape if isinstance(x, Var) else ()
        many = np.broadcast_shapes(*(i.aval.shape if isinstance(i, Var) else () for i in indices))
        a, n = word.axis, len(indices)
        at = self._positions(indices, many, index[a : a + len(many)], shape[a : a + n])
        return self._value(x, (*index[:a], *at, *index[a + len(many) :]))

    def _compute(self, v: Var, index: Index) -> Any:
        e, word = self.equation[v], self.word[v]
        if isinstance(word, View):
            assert word.index is not None
            return self._value(e.inputs[0], tuple(word.index(index, self.numbers.size)))
        if isinstance(word, Gather):
            return self._gathered(e, word, index)
        if isinstance(word, Iota):
            return ex.cast(index[word.axis], CODES[v.aval.dtype])
        operands = []
        for k, (x, dtype) in enumerate(zip(e.inputs, word.operands, strict=True)):
            code = CODES[dtype]
            if isinstance(x, Literal):
                operands.append(ex.const(x.value, code) if k in word.baked else self.numbers.literal(x.value, code))
            else:
                operands.append(ex.cast(self._value(x, aligned(x.aval.shape, v.aval.shape, index)), code))
        build = find(word.name)
        assert build is not None
        self._check_integers(e, word, build)
        value = build(*operands)
        self.calls[value] = word.name, tuple(operands)
        return ex.cast(value, CODES[v.aval.dtype])

    def _check_integers(self, e: Equation, word: Scalar, build: Any) -> None:
        """Note Python integers that do not fit the dtype they are cast to, and results of them beyond 64 bits."""
        if not isinstance(getattr(e.primitive, "function", None), np.ufunc) or e.outputs[0] in self._checked:
            return
        self._checked.add(e.outputs[0])
        for x, dtype in zip(e.inputs, word.operands, strict=True):
            if isinstance(x, Var) and x.aval.weak and x.aval.dtype.kind == "i" and dtype.kind in "iu" and dtype != x.aval.dtype:
                low, high = np.iinfo(dtype).min, min(np.iinfo(dtype).max, np.iinfo(np.int64).max)
                self._note(lambda k: ex.or_(ex.lt(k, int(low)), ex.gt(k, int(high))), x)  # noqa: B023
        out = e.outputs[0].aval
        if word.name in _GROWING and out.weak and out.dtype.kind == "i" and self.whole:
            self._note(lambda *ks: ex.ge(ex.fabs(build(*(ex.cast(k, "f64") for k in ks))), _LARGE), *e.inputs)

    def _note(self, bad: Callable[..., Any], *operands: Var | Literal) -> None:
        """Set the flag if a condition on scalars holds, once, before what is being built."""
        kept = self.loads, self._memo, self.checks, self._built
        self.loads, self._memo, self.checks, self._built = {}, {}, [], {}
        found = bad(*(self._value(x, ()) for x in operands))
        self._add([Store(self.flag, (), ex.cast(found, "i64"), self.loads, "maximum")])
        self.loads, self._memo, self.checks, self._built = kept


def _read_often(e: Equation, word: Any, operands: Sequence[Var]) -> list[Var]:
    """Operands whose entries are each read several times: those that are broadcast, and factors of products."""
    if isinstance(word, Call):
        return list(operands)
    size = e.outputs[0].aval.size
    return [v for v in operands if isinstance(word, Scalar | View) and v.aval.size < size]
