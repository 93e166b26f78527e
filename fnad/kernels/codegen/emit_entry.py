"""The printer of the native entry, `entry.NAME`: what a plan (see `entry`) says, done by machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from fnad.kernels.codegen import entry

I64, I32 = ir.IntType(64), ir.IntType(32)
_HEAD = object.__basicsize__
_SIZE = _HEAD  # of a list or tuple
_LIST_ITEMS = _HEAD + 8  # where a list keeps the address of its items
_TYPE = _HEAD - 8
_DATA, _RANK, _DIMS, _BASE, _DESCR, _FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 32, _HEAD + 40, _HEAD + 48

Words = Sequence[ir.Value]


def word(n: int) -> ir.Constant:
    return ir.Constant(I64, n)


def print_entry() -> ir.Module:
    """The module that holds the function `(self, arguments, count) -> object` of CPython's fast calling convention."""
    module = ir.Module(entry.NAME)
    _Entry(module).run()
    return module


class _Entry:
    """Prints the function. Addresses are 64-bit words throughout."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(I64, [I64] * 3), entry.NAME)
        self.b = ir.IRBuilder(self.function.append_basic_block("start"))
        self.no = self.function.append_basic_block("no")

    def run(self) -> None:
        me, arguments, count = self.function.args
        plan = self.at(me, _DATA)
        self.head = {name: self.at(plan, 8 * k) for k, name in enumerate(entry.HEADER)}
        workspace = self.workspace(arguments, count)
        items = self.items(self.at(arguments, 0))
        n, closed, made = (self.head[k] for k in ("inputs", "constants", "outputs"))
        checked = self.b.add(n, closed)
        self.arrays = self.b.ptrtoint(self.b.alloca(I64, self.b.add(checked, made)), I64)
        self.cursor = self.b.alloca(I64)
        given = self.at(plan, 8 * len(entry.HEADER))
        first_given = self.b.add(plan, word(8 * (len(entry.HEADER) + 1)))
        self.b.store(self.b.add(first_given, self.scaled(given)), self.cursor)
        self.each(n, lambda i: self.accept(self.at(self.b.add(items, self.scaled(i)), 0), i))
        self.each(closed, lambda i: self.accept(self.at(self.b.add(self.head["constant_items"], self.scaled(i)), 0), self.b.add(n, i)))
        self.each(given, lambda i: self.own(self.at(self.b.add(first_given, self.scaled(i)), 0), checked))
        out = self.call("PyList_New", [made])
        self.unless_failed(out, [])
        outs = self.at(out, _LIST_ITEMS)
        scalars = self.b.ptrtoint(self.b.alloca(I64, made), I64)
        self.each(made, lambda i: self.make(i, checked, out, outs, scalars))
        self.compute(workspace)
        self.each(made, lambda i: self.leave(i, out, outs, scalars))
        self.b.ret(out)
        self.b.position_at_end(self.no)
        self.call("Py_IncRef", [self.head["none"]])
        self.b.ret(self.head["none"])

    # -- small things ----------------------------------------------------------------------------------------------

    def at(self, address: ir.Value, offset: int, kind: ir.Type = I64) -> ir.Value:
        """What lies at an address."""
        return self.b.load(self.b.inttoptr(self.b.add(address, word(offset)), kind.as_pointer()))

    def put(self, value: ir.Value, address: ir.Value) -> None:
        self.b.store(value, self.b.inttoptr(address, I64.as_pointer()))

    def scaled(self, n: ir.Value) -> ir.Value:
        return self.b.mul(n, word(8))

    def call(self, name: str, arguments: Words, kinds: Sequence[ir.Type] | None = None) -> ir.Value:
        known = self.module.globals.get(name)
        function = known or ir.Function(self.module, ir.FunctionType(I64, kinds or [I64] * len(arguments)), name)
        return self.b.call(function, arguments)

    def each(self, count: ir.Value, body: Callable[[ir.Value], None]) -> None:
        before, inside, after = self.b.block, self.b.append_basic_block("each"), self.b.append_basic_block("after")
        self.b.cbranch(self.b.icmp_signed(">", count, word(0)), inside, after)
        self.b.position_at_end(inside)
        i = self.b.phi(I64)
        i.add_incoming(word(0), before)
        body(i)
        step = self.b.add(i, word(1))
        i.add_incoming(step, self.b.block)
        self.b.cbranch(self.b.icmp_signed("<", step, count), inside, after)
        self.b.position_at_end(after)

    def when(self, condition: ir.Value, body: Callable[[], None]) -> None:
        inside, after = self.b.append_basic_block("when"), self.b.append_basic_block("after")
        self.b.cbranch(condition, inside, after)
        self.b.position_at_end(inside)
        body()
        self.b.branch(after)
        self.b.position_at_end(after)

    def require(self, condition: ir.Value) -> None:
        """Otherwise the answer is None."""
        good = self.b.append_basic_block("good")
        self.b.cbranch(condition, good, self.no)
        self.b.position_at_end(good)

    def unless_failed(self, made: ir.Value, drop: Words) -> None:
        """Where Python could not make an object it has set an exception."""
        failed, fine = self.b.append_basic_block("failed"), self.b.append_basic_block("fine")
        self.b.cbranch(self.b.icmp_signed("==", made, word(0)), failed, fine)
        self.b.position_at_end(failed)
        for x in drop:
            self.call("Py_DecRef", [x])
        self.b.ret(word(0))
        self.b.position_at_end(fine)

    # -- arguments -------------------------------------------------------------------------------------------------

    def workspace(self, arguments: ir.Value, count: ir.Value) -> ir.Value:
        """The second argument, an address; 0 without it."""
        value = self.b.alloca(I64)
        self.b.store(word(0), value)

        def read() -> None:
            self.b.store(self.call("PyLong_AsLongLong", [self.at(arguments, 8)]), value)

        self.when(self.b.icmp_signed(">", count, word(1)), read)
        return self.b.load(value)

    def items(self, leaves: ir.Value) -> ir.Value:
        """Where the leaves lie, in a list or a tuple of the right length."""
        kind = self.at(leaves, _TYPE)
        is_list = self.b.icmp_signed("==", kind, self.head["list"])
        self.require(self.b.or_(is_list, self.b.icmp_signed("==", kind, self.head["tuple"])))
        self.require(self.b.icmp_signed("==", self.at(leaves, _SIZE), self.head["inputs"]))
        where = self.b.alloca(I64)
        self.b.store(self.b.add(leaves, word(entry.TUPLE_ITEMS)), where)
        self.when(is_list, lambda: self.b.store(self.at(leaves, _LIST_ITEMS), where))
        return self.b.load(where)

    def accept(self, array: ir.Value, k: ir.Value) -> None:
        """Compare an array with the record at the cursor, and keep it as number k."""
        self.require(self.b.icmp_signed("==", self.at(array, _TYPE), self.head["ndarray"]))
        p = self.b.load(self.cursor)
        rank, descr, flags = (self.at(p, 8 * i) for i in range(3))
        self.require(self.b.icmp_signed("==", self.b.zext(self.at(array, _RANK, I32), I64), rank))
        self.require(self.b.icmp_signed("==", self.at(array, _DESCR), descr))
        self.require(self.b.icmp_signed("==", self.b.and_(self.b.zext(self.at(array, _FLAGS, I32), I64), flags), flags))
        sizes, wanted = self.at(array, _DIMS), self.b.add(p, word(24))

        def size(i: ir.Value) -> None:
            here = self.scaled(i)
            self.require(self.b.icmp_signed("==", self.at(self.b.add(sizes, here), 0), self.at(self.b.add(wanted, here), 0)))

        self.each(rank, size)
        self.put(array, self.b.add(self.arrays, self.scaled(k)))
        self.b.store(self.b.add(wanted, self.scaled(rank)), self.cursor)

    def own(self, k: ir.Value, count: ir.Value) -> None:
        """The memory of array k is that of no other array."""
        mine = self.at(self.b.add(self.arrays, self.scaled(k)), 0)

        def differ(j: ir.Value) -> None:
            other = self.at(self.b.add(self.arrays, self.scaled(j)), 0)
            same = self.b.and_(self.b.icmp_signed("!=", j, k), self.b.icmp_signed("==", other, mine))
            self.require(self.b.not_(self.b.or_(same, self.b.icmp_signed("==", self.at(other, _BASE), mine))))

        self.each(count, differ)

    # -- results ---------------------------------------------------------------------------------------------------

    def make(self, k: ir.Value, first: ir.Value, out: ir.Value, outs: ir.Value, scalars: ir.Value) -> None:
        """The array for result k, as the record at the cursor says."""
        p = self.b.load(self.cursor)
        rank, descr, scalar = (self.at(p, 8 * i) for i in range(3))
        sizes = self.b.add(p, word(24))
        self.call("Py_IncRef", [descr])  # the new array takes a reference
        kinds = [I64, I64, I32, I64, I64, I64, I32, I64]
        none, zero = word(0), ir.Constant(I32, 0)
        array = self.call("fnad_new_array", [self.head["ndarray"], descr, self.b.trunc(rank, I32), sizes, none, none, zero, none], kinds)
        self.unless_failed(array, [out])
        here = self.scaled(k)
        self.put(array, self.b.add(outs, here))
        self.put(array, self.b.add(self.arrays, self.scaled(self.b.add(first, k))))
        self.put(scalar, self.b.add(scalars, here))
        self.b.store(self.b.add(sizes, self.scaled(rank)), self.cursor)

    def leave(self, k: ir.Value, out: ir.Value, outs: ir.Value, scalars: ir.Value) -> None:
        """Turn a 0-d result into a NumPy scalar."""
        here = self.scaled(k)

        def convert() -> None:
            place = self.b.add(outs, here)
            made = self.call("fnad_return_array", [self.at(place, 0)])
            self.put(made, place)
            self.unless_failed(made, [out])

        self.when(self.b.icmp_signed("!=", self.at(self.b.add(scalars, here), 0), word(0)), convert)

    def compute(self, workspace: ir.Value) -> None:
        """Run the code, without the lock on the interpreter if the plan says so."""
        code, release = self.head["code"], self.b.icmp_signed("!=", self.head["release"], word(0))
        state = self.b.alloca(I64)

        def run() -> None:
            self.when(release, lambda: self.b.store(self.call("PyEval_SaveThread", []), state))
            kind = ir.FunctionType(ir.VoidType(), [I64] * 4).as_pointer()
            self.b.call(self.b.inttoptr(code, kind), [self.arrays, self.head["sizes"], self.head["literals"], workspace])
            self.when(release, lambda: self.call("PyEval_RestoreThread", [self.b.load(state)]))

        self.when(self.b.icmp_signed("!=", code, word(0)), run)
