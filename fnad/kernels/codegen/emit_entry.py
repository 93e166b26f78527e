"""The printer of the native entry, `entry.NAME`: what a plan (see `entry`) says, done by machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from fnad.kernels.codegen import entry
from fnad.kernels.codegen.counting import I64, each, word

I32, I8 = ir.IntType(32), ir.IntType(8)
_HEAD = object.__basicsize__
_SIZE = _HEAD  # of a list or tuple
_LIST_ITEMS = _HEAD + 8  # where a list keeps the address of its items
_TYPE = _HEAD - 8
_ALIGN = 64
_RECORD = 7  # words of an argument's record before its sizes
_DATA, _RANK, _DIMS, _DESCR, _FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 40, _HEAD + 48

Words = Sequence[ir.Value]


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
        self.ends, self.scratch = self.room(checked), self.room(checked)
        self.data, self.scalars = self.room(self.b.add(checked, made)), self.room(made)
        self.count = self.b.alloca(I64)  # arrays whose data the code gets
        self.cursor = self.b.alloca(I64)
        self.b.store(checked, self.count)
        given = self.head["given"]
        first_given = self.b.add(plan, word(8 * len(entry.HEADER)))
        self.b.store(self.b.add(first_given, self.scaled(given)), self.cursor)
        each(self.b, n, lambda i: self.accept(self.item(items, i), i))
        each(self.b, closed, lambda i: self.accept(self.item(self.head["constant_items"], i), self.b.add(n, i)))
        each(self.b, given, lambda i: self.own(self.item(first_given, i), checked))
        out = self.call("PyList_New", [made])
        self.unless_failed(out, [])
        outs = self.at(out, _LIST_ITEMS)
        each(self.b, made, lambda i: self.make(i, items, out, outs))
        alone = self.b.and_(self.b.icmp_signed("<=", count, word(1)), self.b.icmp_signed(">", self.head["stack"], word(0)))
        self.compute(workspace, alone, out)
        each(self.b, made, lambda i: self.leave(i, out, outs))
        self.b.ret(out)
        self.b.position_at_end(self.no)
        self.call("Py_IncRef", [self.head["none"]])
        self.b.ret(self.head["none"])

    # -- small things ----------------------------------------------------------------------------------------------

    def at(self, address: ir.Value, offset: int, kind: ir.Type = I64) -> ir.Value:
        """What lies at an address."""
        return self.b.load(self.b.inttoptr(self.b.add(address, word(offset)), kind.as_pointer()))

    def item(self, address: ir.Value, k: ir.Value) -> ir.Value:
        """Word k of a vector."""
        return self.at(self.b.add(address, self.scaled(k)), 0)

    def set_item(self, address: ir.Value, k: ir.Value, value: ir.Value) -> None:
        self.b.store(value, self.b.inttoptr(self.b.add(address, self.scaled(k)), I64.as_pointer()))

    def room(self, count: ir.Value) -> ir.Value:
        """The address of a new vector on the stack."""
        return self.b.ptrtoint(self.b.alloca(I64, count), I64)

    def equal(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.icmp_signed("==", a, b)

    def scaled(self, n: ir.Value) -> ir.Value:
        return self.b.mul(n, word(8))

    def call(self, name: str, arguments: Words, kinds: Sequence[ir.Type] | None = None) -> ir.Value:
        known = self.module.globals.get(name)
        function = known or ir.Function(self.module, ir.FunctionType(I64, kinds or [I64] * len(arguments)), name)
        return self.b.call(function, arguments)

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
        """The second argument, an address; without it memory on the stack, for one thread, with no flag set."""
        place = self.b.alloca(I64)
        size = self.b.add(self.head["stack"], word(_ALIGN))
        stack = self.b.and_(self.b.add(self.b.ptrtoint(self.b.alloca(I8, size), I64), word(_ALIGN - 1)), word(-_ALIGN))
        self.b.store(stack, place)

        def read() -> None:
            self.b.store(self.call("PyLong_AsLongLong", [self.at(arguments, 8)]), place)

        self.when(self.b.icmp_signed(">", count, word(1)), read)

        def clear() -> None:
            self.set_item(stack, word(0), word(0))
            self.set_item(stack, word(1), word(1))

        self.when(self.b.icmp_signed(">", self.head["stack"], word(0)), clear)
        return self.b.load(place)

    def items(self, leaves: ir.Value) -> ir.Value:
        """Where the leaves lie, in a list or a tuple of the right length."""
        kind = self.at(leaves, _TYPE)
        is_list = self.equal(kind, self.head["list"])
        self.require(self.b.or_(is_list, self.equal(kind, self.head["tuple"])))
        self.require(self.equal(self.at(leaves, _SIZE), self.head["inputs"]))
        where = self.b.alloca(I64)
        self.b.store(self.b.add(leaves, word(entry.TUPLE_ITEMS)), where)
        self.when(is_list, lambda: self.b.store(self.at(leaves, _LIST_ITEMS), where))
        return self.b.load(where)

    def accept(self, x: ir.Value, k: ir.Value) -> None:
        """Compare an argument with the record at the cursor; its data become number k."""
        p = self.b.load(self.cursor)
        rank, descr, flags, array_type, scalar_type, how, size = (self.at(p, 8 * i) for i in range(_RECORD))
        wanted = self.b.add(p, word(8 * _RECORD))
        array, scalar, done = (self.b.append_basic_block(name) for name in ("array", "scalar", "done"))
        kind = self.at(x, _TYPE)
        self.b.cbranch(self.equal(kind, array_type), array, scalar)
        self.b.position_at_end(array)
        self.require(self.equal(self.b.zext(self.at(x, _RANK, I32), I64), rank))
        self.require(self.equal(self.at(x, _DESCR), descr))
        self.require(self.equal(self.b.and_(self.b.zext(self.at(x, _FLAGS, I32), I64), flags), flags))
        sizes = self.at(x, _DIMS)
        each(self.b, rank, lambda i: self.require(self.equal(self.item(sizes, i), self.item(wanted, i))))
        self.set_item(self.data, k, self.at(x, _DATA))
        self.b.branch(done)
        self.b.position_at_end(scalar)
        self.require(self.equal(kind, scalar_type))
        self.require(self.equal(flags, word(entry.WANTED)))
        self.set_item(self.data, k, self.b.add(x, word(_HEAD)))
        self.when(self.b.icmp_signed("!=", how, word(entry.VALUE)), lambda: self.ask(x, k, how))
        self.b.branch(done)
        self.b.position_at_end(done)
        self.set_item(self.ends, k, self.b.add(self.item(self.data, k), size))
        self.b.store(self.b.add(wanted, self.scaled(rank)), self.cursor)

    def ask(self, x: ir.Value, k: ir.Value, how: ir.Value) -> None:
        """The value of a Python int or bool."""
        true = self.b.zext(self.equal(x, self.head["true"]), I64)
        self.set_item(self.scratch, k, true)
        self.set_item(self.data, k, self.b.add(self.scratch, self.scaled(k)))

        def number() -> None:
            self.set_item(self.scratch, k, self.call("PyLong_AsLongLong", [x]))
            failed, fine = self.b.append_basic_block("failed"), self.b.append_basic_block("fine")
            self.b.cbranch(self.equal(self.call("PyErr_Occurred", []), word(0)), fine, failed)
            self.b.position_at_end(failed)
            self.call("PyErr_Clear", [])  # too large: found again where it is recorded
            self.b.branch(self.no)
            self.b.position_at_end(fine)

        self.when(self.equal(how, word(entry.INT)), number)

    def own(self, k: ir.Value, count: ir.Value) -> None:
        """No other argument lies where array k does."""
        begin, end = self.item(self.data, k), self.item(self.ends, k)

        def apart(j: ir.Value) -> None:
            before = self.b.icmp_unsigned("<=", self.item(self.ends, j), begin)
            after = self.b.icmp_unsigned("<=", end, self.item(self.data, j))
            self.require(self.b.or_(self.b.or_(before, after), self.equal(j, k)))

        each(self.b, count, apart)

    # -- results ---------------------------------------------------------------------------------------------------

    def make(self, k: ir.Value, items: ir.Value, out: ir.Value, outs: ir.Value) -> None:
        """Result k, as the record at the cursor says: a new array, or a leaf."""
        p = self.b.load(self.cursor)
        rank, descr, kind, position = (self.at(p, 8 * i) for i in range(4))
        sizes = self.b.add(p, word(32))
        self.set_item(self.scalars, k, self.b.zext(self.equal(kind, word(entry.SCALAR)), I64))
        taken, new, done = (self.b.append_basic_block(name) for name in ("taken", "new", "done"))
        self.b.cbranch(self.equal(kind, word(entry.TAKEN)), taken, new)
        self.b.position_at_end(taken)
        leaf = self.item(items, position)
        self.call("Py_IncRef", [leaf])
        self.set_item(outs, k, leaf)
        self.b.branch(done)
        self.b.position_at_end(new)
        self.call("Py_IncRef", [descr])  # the new array takes a reference
        kinds = [I64, I64, I32, I64, I64, I64, I32, I64]
        none, zero = word(0), ir.Constant(I32, 0)
        array = self.call("fnad_new_array", [self.head["ndarray"], descr, self.b.trunc(rank, I32), sizes, none, none, zero, none], kinds)
        self.unless_failed(array, [out])
        self.set_item(outs, k, array)
        n = self.b.load(self.count)
        self.set_item(self.data, n, self.at(array, _DATA))
        self.b.store(self.b.add(n, word(1)), self.count)
        self.b.branch(done)
        self.b.position_at_end(done)
        self.b.store(self.b.add(sizes, self.scaled(rank)), self.cursor)

    def leave(self, k: ir.Value, out: ir.Value, outs: ir.Value) -> None:
        """Turn a 0-d result into a NumPy scalar."""

        def convert() -> None:
            made = self.call("fnad_return_array", [self.item(outs, k)])
            self.set_item(outs, k, made)
            self.unless_failed(made, [out])

        self.when(self.b.icmp_signed("!=", self.item(self.scalars, k), word(0)), convert)

    def resume(self, state: ir.Value, out: ir.Value) -> None:
        """Take the lock again. The code may have ended early, since the handler of a signal has raised."""
        self.call("PyEval_RestoreThread", [self.b.load(state)])
        ended, fine = self.b.append_basic_block("ended"), self.b.append_basic_block("fine")
        self.b.cbranch(self.equal(self.call("PyErr_Occurred", []), word(0)), fine, ended)
        self.b.position_at_end(ended)
        self.call("Py_DecRef", [out])
        self.b.ret(word(0))
        self.b.position_at_end(fine)

    def drop(self, out: ir.Value) -> None:
        """The code has met what it cannot compute."""
        self.call("Py_DecRef", [out])
        self.b.branch(self.no)
        self.b.position_at_end(self.b.append_basic_block("unreached"))

    def compute(self, workspace: ir.Value, alone: ir.Value, out: ir.Value) -> None:
        """Run the code, without the lock on the interpreter if the plan says so. Alone: nobody else looks at the workspace."""
        code, release = self.head["code"], self.b.icmp_signed("!=", self.head["release"], word(0))
        state = self.b.alloca(I64)

        def run() -> None:
            self.when(release, lambda: self.b.store(self.call("PyEval_SaveThread", []), state))
            kind = ir.FunctionType(ir.VoidType(), [I64] * 4).as_pointer()
            self.b.call(self.b.inttoptr(code, kind), [self.data, self.head["sizes"], self.head["literals"], workspace])
            self.when(release, lambda: self.resume(state, out))
            noted = self.b.icmp_signed("!=", self.item(workspace, word(0)), word(0))
            self.when(self.b.and_(alone, noted), lambda: self.drop(out))

        self.when(self.b.icmp_signed("!=", code, word(0)), run)
