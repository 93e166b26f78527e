"""Reverse mode: a loop function -> the program that computes the gradients of its results.

The program runs the function forwards, then backwards. Going backwards, the contents of arrays are restored step by step:
a store whose old element is needed again keeps it. The scalars of a loop's body are recomputed from what the iteration
starts with; kept are only those that cannot be: versions of names that iterations hand on, results of inner loops, and
elements that are overwritten later in the same iteration. What an accumulation adds to is never needed, so never kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fnad.errors import UnsupportedError
from fnad.loops.analysis import VIEWS, Activity, Memory, Places, is_array
from fnad.loops.checkpointing import pieces, save
from fnad.loops.derivatives import rule_of
from fnad.loops.emit import Builder
from fnad.loops.hoist import hoist
from fnad.loops.ir import INT, Block, Const, For, Function, If, Item, Op, Operand, Scalar, Value, While, blocks, walk
from fnad.loops.order import independent
from fnad.loops.resolve import Scope, is_simple, operands, used
from fnad.loops.scalars import guarded, rule
from fnad.loops.tangent import names_of
from fnad.loops.unroll import unrolled


class Program:
    """The parts of an adjoint: `forward` and `backward` are blocks of the loop language with the extra kinds below.

    | kind | meaning |
    |---|---|
    | `set`, `acc` | the variable `args[0]` becomes, or grows by, `args[1]` |
    | `acc_at` | like `store`, but adds |
    | `init` | the variable `out` becomes 0 |
    | `push` | the numbers `args` go to the tape; with attrs `rows` after two operands, whose difference is the row |
    | `pop` | attrs `values` come from the tape; with attrs `rows` from the row that `args` say |
    | `rewind` | the tape goes back to where the rows of the loop over `range(*args)` begin |
    | `keep`, `take` | the array binding attrs `value` goes to a list of its own, or comes from it |
    | `call` | the helper attrs `name` is called for its effect |
    """

    def __init__(self, fn: Function, wanted: Sequence[bool], snapshots: int = -1) -> None:
        self.snapshots = snapshots
        names = names_of(fn)
        fn = unrolled(fn, names)
        hoist(fn.body, names, Memory(fn).alias)
        self.fn, self.wanted = fn, tuple(wanted)
        self.memory = Memory(fn)
        self.active = Activity(fn, self.memory, wanted)
        self.places = Places(fn.body)
        self.stores = [i for i in walk(fn.body) if isinstance(i, Op) and i.kind == "store"]
        self.undone: set[int] = set()
        while self._build():
            pass

    def _build(self) -> bool:
        """Write the program; answer whether it needs more stores undone than were."""
        self.names = names_of(self.fn)
        self.bar: dict[Value, Value] = {}
        self.shadow: dict[Value, Value] = {}
        self.old: dict[int, Value] = {}
        self.added: set[int] = set()
        self.reads: list[tuple[Op, Value]] = []
        self.rows: dict[int, Op] = {}
        self.copies: dict[Value, Value] = {}
        self.ends: dict[int, list[Value]] = {}
        self.depth = 0
        first = Builder(self.names)
        every = [*self.fn.args, *(v for v, _ in self.fn.captured)]
        for value in every:
            if is_array(value) and value in self.active:
                self.shadow[value] = first.like(value, f"{value.name}_b")
        self.forward = self._augment(self.fn.body)
        self.forward.items[:0] = first.block.items
        self.backward = self._reverse(self.forward.items, self._seed)
        self.origin = {s: v for v, s in self.shadow.items()}
        brief(self.backward)
        more = {
            id(s)
            for s in self.stores
            if id(s) not in self.undone and any(self.places.may_precede(op, a, s, self.memory) for op, a in self.reads)
        }
        self.undone |= more
        return bool(more)

    def _seed(self, b: Builder) -> None:
        """What the caller hands in for a float result is added to its adjoint."""
        self._zero(self.fn.args, b)
        self.seeds: list[Value] = []
        for r in self.fn.returns:
            if r.type.dtype.kind not in "fc":
                continue
            given = Value(self.names.fresh(f"{r.name if isinstance(r, Value) else 'out'}_ct"), r.type)
            self.seeds.append(given)
            if isinstance(r, Value) and r in self.active:
                if is_array(r):
                    b.do("call", self.shadow[r], given, name="accumulate")
                else:
                    b.do("acc", self._bar(r), given)

    def gradients(self) -> list[Operand]:
        """The results of the program: one per wanted argument, a zero array or number where it has no influence."""
        found: list[Operand] = []
        end = Builder(self.names, self.backward)
        for a, wanted in zip(self.fn.args, self.wanted, strict=True):
            if not wanted:
                continue
            if not is_array(a):
                found.append(self._bar(a) if a in self.active else Const(0.0, a.type))  # type: ignore[arg-type]
            else:
                found.append(self.shadow[a] if a in self.active else end.like(a, f"{a.name}_b"))
        return found

    # The forward sweep: the function with the shadows of its arrays.

    def _augment(self, block: Block) -> Block:
        b = Builder(self.names)
        for item in block.items:
            b.line = item.line
            if isinstance(item, Op):
                self._augment_op(item, b)
            else:
                b.block.items.append(self._augment_region(item))
        return b.block

    def _augment_op(self, op: Op, b: Builder) -> None:
        if op.kind == "store" and id(op) in self.undone:
            self.old[id(op)] = self._previous(op, b)
        b.block.items.append(op)
        out = op.out
        if out is None or not is_array(out) or out not in self.active:
            return
        start, name = len(b.block.items), f"{out.name}_b"
        if op.kind in VIEWS:
            base = op.args[0]
            assert isinstance(base, Value)
            self.shadow[out] = b.op(op.kind, self.shadow[base], *op.args[1:], type=out.type, name=name, **op.attrs)
        elif op.kind == "alloc":
            self.shadow[out] = b.op("alloc", *op.args, type=out.type, name=name, fill=0.0)
        else:
            self.shadow[out] = b.like(out, name)
        self.added |= {id(i) for i in b.block.items[start:]}

    def _previous(self, store: Op, b: Builder) -> Value:
        """The element before the store: one that was just loaded, or one more load."""
        for item in reversed(b.block.items):
            if not isinstance(item, Op) or (item.kind == "store" and self.memory.alias(item.args[0], store.args[0])):
                break
            if item.kind == "load" and item.args == store.args[:-1]:
                assert item.out is not None
                return item.out
        array, *index = store.args[:-1]
        assert isinstance(array, Value)
        old = b.op("load", array, *index, type=Scalar(array.type.dtype), name="old")
        self.added.add(id(b.block.items[-1]))
        return old

    def _augment_region(self, item: Item) -> Item:
        if isinstance(item, If):
            new = If(item.condition, self._augment(item.then), self._augment(item.orelse), line=item.line)
            new.then_yields, new.else_yields, new.results = [*item.then_yields], [*item.else_yields], [*item.results]
            for a, c, r in zip(item.then_yields, item.else_yields, item.results, strict=True):
                if is_array(r) and r in self.active:
                    new.then_yields.append(self.shadow[a])  # type: ignore[index]
                    new.else_yields.append(self.shadow[c])  # type: ignore[index]
                    new.results.append(self._twin(r))
            return new
        assert isinstance(item, For | While)
        shadowed = [k for k, p in enumerate(item.params) if is_array(p) and p in self.active]
        inits = [*item.inits, *(self.shadow[item.inits[k]] for k in shadowed)]  # type: ignore[index]
        params = [*item.params, *(self._twin(item.params[k]) for k in shadowed)]
        head = self._augment(item.head) if isinstance(item, While) else Block()
        body = self._augment(item.body)
        yields = [*item.yields, *(self.shadow[item.yields[k]] for k in shadowed)]  # type: ignore[index]
        results = [*item.results, *(self._twin(item.results[k]) for k in shadowed)]
        if isinstance(item, While):
            return While(head, item.condition, body, params, inits, yields, results, item.count, item.stop, item.line)
        return For(item.iv, item.lo, item.hi, item.step, body, params, inits, yields, results, item.stop, item.count, line=item.line)

    def _twin(self, array: Value) -> Value:
        self.shadow[array] = Value(self.names.fresh(f"{array.name}_b"), array.type, array.line)
        return self.shadow[array]

    # The backward sweep.

    def _bar(self, value: Value) -> Value:
        if value not in self.bar:
            self.bar[value] = Value(self.names.fresh(f"{value.name}_b"), value.type, value.line)
        return self.bar[value]

    def _zero(self, values: Iterable[Value], b: Builder) -> None:
        for v in values:
            if not is_array(v) and v in self.active:
                b.do("set", self._bar(v), b.const(0.0, v))

    def _give(self, x: Operand | None, amount: Operand, b: Builder) -> None:
        """Add to the adjoint of an operand, if it has one."""
        if x in self.active and not is_array(x):
            assert isinstance(x, Value)
            assert isinstance(x.type, Scalar)
            b.do("acc", self._bar(x), b.cast(amount, x.type))

    def _reverse(self, items: Sequence[Item], lead: Callable[[Builder], None] | None = None) -> Block:
        """The items backwards; the adjoints of what they define begin with zero, `lead` gives them what comes from outside."""
        b = Builder(self.names)
        for item in items:
            own = [item.out] if isinstance(item, Op) else item.results
            self._zero([v for v in own if v is not None], b)
        if lead is not None:
            lead(b)
        for item in reversed(items):
            if id(item) in self.added:
                continue
            b.line = item.line
            if isinstance(item, Op):
                self._reverse_op(item, b)
            elif isinstance(item, If):
                self._reverse_if(item, b)
            else:
                self._reverse_loop(item, b)
        return b.block

    def _reverse_op(self, op: Op, b: Builder) -> None:
        out, args = op.out, op.args
        if op.kind == "store":
            self._reverse_store(op, b)
        elif op.kind == "dot":
            self._reverse_dot(op, b)
        elif op.kind == "copy" and out in self.active:
            if args[0] not in self.shadow:  # what is copied into it is constant
                return
            b.do("call", self.shadow[args[0]], self.shadow[out], name="accumulate")  # type: ignore[index]
        elif out is None or is_array(out) or out not in self.active:
            return
        elif op.kind == "load":
            b.do("acc_at", self.shadow[args[0]], *args[1:], self._bar(out))  # type: ignore[index]
        elif op.kind == "cast":
            self._give(args[0], self._bar(out), b)
        elif op.kind == "select":
            zero = b.const(0.0, out)
            for x, pair in ((args[1], (self._bar(out), zero)), (args[2], (zero, self._bar(out)))):
                if x in self.active:
                    self._give(x, b.op("select", args[0], *pair, type=out.type), b)
        else:
            self._reverse_number(op, b)

    def _reverse_number(self, op: Op, b: Builder) -> None:
        known = rule_of(op.attrs["function"]) if op.kind == "opaque" else rule(op.kind)
        assert known is not None
        assert op.out is not None
        if known.slopes is None or not any(a in self.active for a in op.args):
            return
        bar = self._bar(op.out)
        if op.kind == "div":  # one division for both operands
            each = b.div(bar, op.args[1])  # type: ignore[arg-type]
            self._give(op.args[0], each, b)
            if op.args[1] in self.active:
                self._give(op.args[1], b.neg(b.mul(each, op.out)), b)
            return
        slopes = known.slopes(b, [a for a in op.args if a is not None], op.out)
        for x, slope in zip(op.args, slopes, strict=True):
            if x in self.active:
                amount = b.mul(bar, slope)
                if guarded(op, known):
                    amount = b.unless_lost(amount, bar)
                self._give(x, amount, b)

    def _reverse_store(self, op: Op, b: Builder) -> None:
        array, *index, value = op.args
        assert isinstance(array, Value)
        if array in self.active:
            shadow = self.shadow[array]
            if value in self.active:
                self._give(value, b.op("load", shadow, *index, type=Scalar(array.type.dtype), name="g"), b)
            b.do("store", shadow, *index, b.const(0.0, Scalar(array.type.dtype)))
        if id(op) in self.old:
            b.do("store", array, *index, self.old[id(op)])

    def _reverse_dot(self, op: Op, b: Builder) -> None:
        if op.out not in self.active:
            return
        x, y = op.args
        assert isinstance(x, Value)
        assert isinstance(y, Value)
        assert op.out is not None
        ct = self.shadow[op.out] if is_array(op.out) else self._bar(op.out)
        ranks = f"{x.type.ndim}{y.type.ndim}"  # type: ignore[union-attr]
        for side, a, other in (("left", x, y), ("right", y, x)):
            if a in self.active:
                b.do("call", self.shadow[a], ct, other, name=f"dot_{side}_{ranks}")
                self.reads.append((op, other))

    def _reverse_if(self, item: If, b: Builder) -> None:
        then, orelse = (
            self._branch(block, yields, item, is_simple(item))
            for block, yields in ((item.then, item.then_yields), (item.orelse, item.else_yields))
        )
        if then.items or orelse.items:
            b.block.items.append(If(item.condition, then, orelse, line=item.line))

    def _branch(self, block: Block, yields: list[Operand], item: If, simple: bool) -> Block:
        def lead(b: Builder) -> None:
            for y, r in zip(yields, item.results, strict=True):
                if r in self.active and not is_array(r):
                    self._give(y, self._bar(r), b)

        backward = self._reverse(block.items, lead)
        if not simple and self.depth:
            Scope(self, [block], []).resolve(backward)
        return backward

    def _reverse_loop(self, item: For | While, b: Builder) -> None:
        """The adjoint of what an iteration hands on travels backwards in the adjoint of the loop's result."""
        carried = [
            (p, i, y, r)
            for p, i, y, r in zip(item.params, item.inits, item.yields, item.results, strict=True)
            if not is_array(r) and (r in self.active or p in self.active)
        ]

        def lead(inner: Builder) -> None:
            self._zero([p for p, *_ in carried], inner)
            for _, _, y, r in carried:
                self._give(y, self._bar(r), inner)

        for *_, r in carried:
            if r not in self.active:
                b.do("set", self._bar(r), b.const(0.0, r))
        starts = [(r, i) for _, i, _, r in carried]
        cut = save(self, item, self.snapshots) if isinstance(item, For) and self._long(item) else None
        self.depth += 1
        sources = [item.body] if isinstance(item, For) else [item.head, item.body]
        inner = Builder(self.names, self._reverse([i for s in sources for i in s.items], lead))
        for p, _, _, r in carried:
            inner.do("set", self._bar(r), self._bar(p) if p in self.active else inner.const(0.0, r))
        scope = Scope(self, sources, item.params)
        scope.resolve(inner.block)
        outer = b
        if cut is not None and isinstance(item, For):
            b = pieces(self, item, cut, outer)
        self._number_rows(item, scope, b)
        if isinstance(item, While) and any(isinstance(i, Op) and i.kind == "keep" for i in walk(item.head)):
            raise UnsupportedError(
                "the condition of a while loop runs a loop that binds new arrays, which reverse mode cannot take back",
                got={"at": f"{self.fn.source[0]}:{item.line}"},
                fix="compute the condition at the end of the loop's body, in a variable",
            )
        self.depth -= 1
        if inner.block.items:
            self._backwards(item, inner.block, b)
        for r, i in starts:
            self._give(i, self._bar(r), outer)

    def _long(self, item: For | While) -> bool:
        """Whether the loop is one to reverse piece by piece: it stands alone, and its length is known."""
        known = isinstance(item, For) and item.stop is None and isinstance(item.step, Const) and item.step.value in (1, -1)
        return self.snapshots >= 0 and known and any(i is item for i in self.forward.items)

    def _number_rows(self, item: For | While, scope: Scope, b: Builder) -> None:
        """Give every iteration of an innermost loop of known length its own row on the tape, so that the order is free."""
        if scope.push is None or scope.pop is None or isinstance(item, While) or item.stop is not None:
            return
        if not (all(map(is_simple, scope.items)) and isinstance(item.step, Const) and item.step.value in (1, -1)):
            return
        rows = self.names.fresh("rows")
        where = (item.iv, item.lo) if item.step.value == 1 else (item.lo, item.iv)
        for op in (scope.push, scope.pop):
            op.args, op.attrs["rows"] = (*where, *op.args), rows
        self.rows[id(item)] = scope.push
        b.do("rewind", item.lo, item.hi, item.step, rows=rows, values=scope.pop.attrs["values"])

    def _backwards(self, item: For | While, body: Block, b: Builder) -> None:
        """The loop that visits the iterations from the last one to the first."""
        one, minus = b.integer(1), b.integer(-1)
        if isinstance(item, While):
            iv: Value = Value(self.names.fresh("k"), INT)
            last: Operand = b.op("sub", item.count, one, type=INT, name="last")
            b.block.items.append(For(iv, last, minus, minus, body, line=item.line))
            return
        lo, hi, step = item.lo, item.hi, item.step
        if independent(item, self.memory, self.places):
            b.block.items.append(For(item.iv, lo, hi, step, body, line=item.line))
            return
        if isinstance(step, Const) and step.value == 1:
            end = hi if item.count is None else _plus(b, lo, item.count)
            b.block.items.append(For(item.iv, _plus(b, end, minus), _plus(b, lo, minus), minus, body, line=item.line))
            return
        if isinstance(step, Const) and step.value == -1 and item.count is None:
            b.block.items.append(For(item.iv, _plus(b, hi, one), _plus(b, lo, one), one, body, line=item.line))
            return
        iv = Value(self.names.fresh("k"), INT)
        trips = item.count or b.op("trips", lo, hi, step, type=INT, name="n")
        offset = Op("mul", (iv, step), Value(self.names.fresh("t"), INT))
        body.items[:0] = [offset, Op("add", (lo, offset.out), item.iv)]
        b.block.items.append(For(iv, _plus(b, trips, minus), minus, minus, body, line=item.line))


def _plus(b: Builder, x: Operand, y: Operand) -> Operand:
    if isinstance(x, Const) and isinstance(y, Const):
        return Const(x.value + y.value, INT)
    if isinstance(x, Const) and x.value == 0:
        return y
    if isinstance(y, Const) and y.value < 0:
        return b.op("sub", x, Const(-y.value, INT), type=INT)
    return b.op("add", x, y, type=INT)


def brief(block: Block) -> None:
    """`v = 0` followed by `v += x` is `v = x`; what stays zero is not written."""
    items = block.items
    for item in items:
        for inner in blocks(item):
            brief(inner)
    for k, zero in enumerate(items):
        if not (isinstance(zero, Op) and zero.kind == "set" and isinstance(zero.args[1], Const)):
            continue
        v = zero.args[0]
        for j in range(k + 1, len(items)):
            item = items[j]
            if isinstance(item, Op) and item.kind == "acc" and item.args[0] is v and item.args[1] is not v:
                items[j] = Op("set", item.args, None, {}, item.line)
                items[k] = _NOTHING
                break
            if v in operands(item) or any(v in used(b) for b in blocks(item)):
                break
    items[:] = [i for i in items if i is not _NOTHING]


_NOTHING = Op("nothing", ())
