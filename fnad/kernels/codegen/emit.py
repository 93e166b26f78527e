"""The LLVM printer of the loop IR.

A program becomes one function `(arrays, sizes, literals, work)`, all of them addresses; `arrays` of the addresses of its arrays' data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from llvmlite import ir

from fnad.kernels.codegen import expr as ex
from fnad.kernels.codegen import graph as exgraph
from fnad.kernels.codegen.callback import ENDED
from fnad.kernels.codegen.counting import I64, each, steps
from fnad.kernels.codegen.emit_parts import spread_over_threads
from fnad.kernels.codegen.emit_pause import in_pieces, repeat
from fnad.kernels.codegen.emit_product import foreign, gemm, lapack, start, vector
from fnad.kernels.codegen.llvm_expr import TYPES, emit
from fnad.kernels.codegen.share import Pattern, patterns
from fnad.kernels.codegen.stages import Stages, stages

I32, I8 = ir.IntType(32), ir.IntType(8)
_BUSY = 64  # operations of a loop that keep a processor busy, also if each iteration of a sum waits for the one before
_FEW = 8  # loops of a program that is compiled as well as LLVM can
_ROWS = 16  # iterations of a loop that runs in stages
_BLOCK = 512  # iterations between two looks at whether the rare case occurs


def print_program(name: str, program: Any) -> ir.Module:
    """A program as a function of that name, in a module of its own."""
    module = ir.Module(name)
    Emitter(ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 4), name), program).run()
    return module


class Emitter:
    """Prints one program into an IRBuilder that stands behind an entry block of its own.

    Its functions take `(arrays, sizes, literals, work)`, those that it makes for nodes also `(table, part)`. The table holds the
    positions of a node's buffers and numbers in these vectors, and `given` says which is where, if a function serves several.
    """

    def __init__(
        self, function: ir.Function, program: Any, private: Any = None, given: dict[Any, int] | None = None, scopes: Scopes | None = None
    ) -> None:
        self.function, self.program, self.private, self.given = function, program, private or {}, given or {}
        self.entry = ir.IRBuilder(function.append_basic_block("entry"))
        self.first = function.append_basic_block("body")
        self.b = ir.IRBuilder(self.first)
        arguments = function.args
        self.module = function.module
        self.arrays, self.sizes, self.literals, self.work = arguments[:4]
        self.table: ir.Value = arguments[4] if len(arguments) > 4 else ir.Constant(I64, 0)
        self.part: ir.Value | None = arguments[5] if len(arguments) > 4 else None
        self.large = sum(map(innermost, program.nodes)) > _FEW
        self.fast = False  # whether what is rarely needed is left out
        self.limits: dict[int, tuple[ir.Value, ir.Value]] = {}  # of loops of which only a piece is to run, by id
        self.rows: dict[Any, tuple[str, ir.Value]] = {}  # registers that there is one of for each iteration, and the first of these
        self.env: dict[str, ir.Value] = {}
        self.pointers: dict[Any, ir.Value] = {}
        self.scopes = scopes

    def run(self) -> None:
        shared = patterns(self.program)
        functions: dict[str, ir.Function] = {}
        for k, node in enumerate(self.program.nodes):
            if k in shared and shared[k].key in functions:
                self.call_shared(shared[k], functions[shared[k].key])
                continue
            scopes = Scopes(self.module, self.program.touched[k], f"{self.program.name}.{k}")
            if k in shared:
                pattern = shared[k]
                given = {x: i for i, x in enumerate((*pattern.roots, *pattern.numbers))}
                function = functions[pattern.key] = self.new_function()
                inner = Emitter(function, self.program, given=given, scopes=scopes)
                inner.node(node)
                inner.finish()
                self.call_shared(pattern, function)
            else:
                self.scopes = scopes
                self.node(node)
        self.finish()

    def call_shared(self, pattern: Pattern, function: ir.Function) -> None:
        """Call the function of all nodes with the same pattern for one of them: a table says where its buffers and numbers are."""
        places = [self.program.slot(r) if r.kind in ("input", "output") else int(r.offset.attr[1:]) for r in pattern.roots]
        places += [int(name[1:]) for name in pattern.numbers]
        kind = ir.ArrayType(I64, len(places))
        table = ir.GlobalVariable(self.module, kind, f"{self.function.name}_table{len(self.module.globals)}")
        table.initializer, table.global_constant, table.linkage = ir.Constant(kind, places), True, "internal"
        where = self.b.ptrtoint(table, I64)
        self.b.call(function, [self.arrays, self.sizes, self.literals, self.work, where, ir.Constant(I64, 0)])

    def new_function(self, arguments: int = 6) -> ir.Function:
        name = f"{self.function.name}_part{len(self.module.functions)}"
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [I64] * arguments), name)
        function.attributes.add("noinline")
        function.linkage = "internal"
        return function

    def finish(self) -> None:
        self.b.ret_void()
        self.entry.branch(self.first)

    # -- leaves ----------------------------------------------------------------------------------------------------

    def value(self, e: Any) -> ir.Value:
        """An expression over numbers, loop variables and whatever the environment holds."""
        return self.values([e])[0]

    def values(self, exprs: Sequence[Any]) -> list[ir.Value]:
        """Several of them; what they share is computed once."""
        for v in exgraph.variables(exprs):
            self.named(v.attr)
        return emit(self.b, self.module, exprs, self.env)

    def named(self, name: str) -> ir.Value:
        if name not in self.env:
            self.env[name] = self.number(name)
        return self.env[name]

    def number(self, name: str) -> ir.Value:
        """A size or literal from the argument vectors."""
        base, kind = (self.sizes, I64) if name[0] == "s" else (self.literals, ir.DoubleType())
        return self.word(base, self.position(name, int(name[1:])), kind)

    def position(self, x: Any, usual: int) -> ir.Value:
        """Where something is in its vector: the table says so in functions that serve several nodes."""
        return self.word(self.table, ir.Constant(I64, self.given[x])) if self.given else ir.Constant(I64, usual)

    def word(self, base: ir.Value, k: ir.Value, kind: ir.Type = I64) -> ir.Value:
        return self.entry.load(self.entry.gep(self.entry.inttoptr(base, kind.as_pointer()), [k]))

    def pointer(self, buffer: Any) -> ir.Value:
        root = buffer.root
        if root not in self.pointers:
            kind = memory_type(root.code).as_pointer()
            if root.is_register:
                p = self.entry.alloca(memory_type(root.code))
            elif root in self.private:
                p = self.copy(self.entry, self.value_in_entry, root, self.part)
            elif root.kind == "flag":
                p = self.entry.inttoptr(self.work, kind)
            elif root.kind in ("temp", "carry"):
                offset = self.word(self.sizes, self.position(root, int(root.offset.attr[1:])))
                p = self.entry.inttoptr(self.entry.add(self.work, offset), kind)
            else:
                p = self.entry.inttoptr(self.word(self.arrays, self.position(root, self.program.slot(root))), kind)
            self.pointers[root] = p
        return self.pointers[root]

    def value_in_entry(self, e: Any) -> ir.Value:
        for v in exgraph.variables([e]):
            self.named(v.attr)
        return emit(self.entry, self.module, [e], self.env)[0]

    def address(self, buffer: Any, index: Sequence[Any]) -> ir.Value:
        base = self.pointer(buffer)
        if buffer.root in self.rows:
            name, begin = self.rows[buffer.root]
            return self.b.gep(base, [self.b.sub(self.env[name], begin)], inbounds=True)
        if buffer.root.is_register:
            return base
        total = self.program.offset(buffer, index)
        if total is None:
            return base
        return self.b.gep(base, [self.value(total)], inbounds=True)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def node(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "Loop":
            self.loop(node)
        elif kind == "While":
            self.while_loop(node)
        elif kind == "Branch":
            self.branch(node)
        elif kind == "Store":
            self.store(node)
        elif kind == "Host":
            self.host(node)
        elif kind == "Lapack":
            lapack(self, node)
        elif kind == "Foreign":
            foreign(self, node)
        else:
            gemm(self, node)

    def while_loop(self, node: Any) -> None:
        again, test, body, after = (self.b.append_basic_block(name) for name in ("again", "test", "body", "after"))
        self.b.branch(again)
        self.b.position_at_end(again)
        self.b.branch(test)
        self.b.position_at_end(test)
        self.nodes(node.bodies[0])
        self.b.cbranch(self.load(node.going, ()), body, after)
        self.b.position_at_end(body)
        self.nodes(node.bodies[1])
        if node.pause is not None:
            repeat(self, test, node.pause)
        self.b.branch(again)
        self.b.position_at_end(after)

    def host(self, node: Any) -> None:
        """Let Python compute; if it raises, the program ends."""
        places = vector(self, [self.b.ptrtoint(start(self, b), I64) for b in node.buffers])
        kind = ir.FunctionType(ir.VoidType(), [I64] * 3)
        call = self.module.globals.get("fnad_host") or ir.Function(self.module, kind, "fnad_host")
        mark = self.b.inttoptr(self.b.add(self.work, ir.Constant(I64, ENDED)), I64.as_pointer())
        self.b.store(ir.Constant(I64, 1), mark)
        self.b.call(call, [self.work, ir.Constant(I64, node.number), places])
        raised, after = (self.b.append_basic_block(name) for name in ("raised", "after"))
        self.b.cbranch(self.b.icmp_signed("==", self.b.load(mark), ir.Constant(I64, 0)), after, raised)
        self.b.position_at_end(raised)
        self.b.ret_void()
        self.b.position_at_end(after)

    def branch(self, node: Any) -> None:
        chosen = self.load(node.chosen, ())
        cases = [self.b.append_basic_block("case") for _ in node.bodies]
        after = self.b.append_basic_block("after")
        switch = self.b.switch(chosen, cases[-1])
        for k, case in enumerate(cases[:-1]):
            switch.add_case(ir.Constant(chosen.type, k), case)
        for case, body in zip(cases, node.bodies, strict=True):
            self.b.position_at_end(case)
            self.nodes(body)
            self.b.branch(after)
        self.b.position_at_end(after)

    def loop(self, loop: Any, bounds: tuple[ir.Value, ir.Value] | None = None) -> None:
        if loop.parts is not None and bounds is None:
            self.in_parts(loop.parts, lambda inner: inner.value(loop.size), lambda inner, *bounds: inner.loop(loop, bounds))
            return
        low, n = bounds or self.limits.get(id(loop)) or (ir.Constant(I64, 0), self.value(loop.size))
        if loop.pause is not None and bounds is None:
            in_pieces(self, low, n, loop.pause, lambda *piece: self.loop(loop, piece))
            return
        conditions, loads = rare_conditions(loop)
        cut = stages(self.program, loop)
        if conditions and not self.fast:
            self.in_blocks(loop, low, n, conditions, loads)
        elif cut is not None:
            self.in_stages(loop, cut, low, n)
        else:
            self.run_over(loop, low, n, functools.partial(self.nodes, loop.body))

    def nodes(self, body: Sequence[Any]) -> None:
        for child in body:
            self.node(child)

    def in_blocks(self, loop: Any, low: ir.Value, n: ir.Value, conditions: Sequence[Any], loads: dict[str, Any]) -> None:
        """Run a loop in short blocks: without what is rarely needed, unless an entry of the block needs it."""
        size = ir.Constant(I64, _BLOCK)
        blocks = self.b.sdiv(self.b.add(self.b.sub(n, low), ir.Constant(I64, _BLOCK - 1)), size)
        flag = self.entry.alloca(I64)

        def look() -> None:
            for name, (buffer, index) in loads.items():
                self.env[name] = self.load(buffer, index)
            found = self.b.load(flag)
            for c in self.values(conditions):
                found = self.b.or_(found, self.b.zext(c, I64))
            self.b.store(found, flag)

        def block(k: ir.Value) -> None:
            begin = self.b.add(low, self.b.mul(k, size))
            end = self.b.add(begin, size)
            end = self.b.select(self.b.icmp_signed("<", end, n), end, n)
            self.b.store(ir.Constant(I64, 0), flag)
            self.run_over(loop, begin, end, look)
            usual, rare, after = (self.b.append_basic_block(name) for name in ("usual", "rare", "after"))
            self.b.cbranch(self.b.icmp_signed("==", self.b.load(flag), ir.Constant(I64, 0)), usual, rare)
            for where, fast in ((usual, True), (rare, False)):
                self.b.position_at_end(where)
                self.fast = fast
                self.run_over(loop, begin, end, functools.partial(self.nodes, loop.body))
                self.b.branch(after)
            self.fast = False
            self.b.position_at_end(after)

        each(self.b, blocks, block)

    def in_stages(self, loop: Any, cut: Stages, low: ir.Value, n: ir.Value) -> None:
        """Run a loop a few iterations at a time: for all of these the first part of its body, then the next."""
        size = ir.Constant(I64, _ROWS)
        for root in cut.kept:
            kind = ir.ArrayType(memory_type(root.code), _ROWS)
            self.pointers[root] = self.entry.gep(self.entry.alloca(kind), [ir.Constant(I64, 0), ir.Constant(I64, 0)])

        def block(begin: ir.Value) -> None:
            end = self.b.add(begin, size)
            end = self.b.select(self.b.icmp_signed("<", end, n), end, n)
            self.rows.update((root, (loop.var.attr, begin)) for root in cut.kept)
            for body in cut.bodies:
                self.loop(type(loop)(loop.var, loop.extent, loop.size, body), (begin, end))
            for root in cut.kept:
                del self.rows[root]

        steps(self.b, low, n, size, block)

    def run_over(self, loop: Any, low: ir.Value, n: ir.Value, body_of: Any) -> None:
        before = self.b.block
        body = self.b.append_basic_block("loop")
        after = self.b.append_basic_block("after")
        self.b.cbranch(self.b.icmp_signed(">", n, low), body, after)
        self.b.position_at_end(body)
        i = self.b.phi(I64)
        i.add_incoming(low, before)
        for var in self.program.variables(loop):
            self.env[var] = i
        body_of()
        step = self.b.add(i, ir.Constant(I64, 1), flags=("nsw", "nuw"))
        i.add_incoming(step, self.b.block)
        advise(self.b.cbranch(self.b.icmp_signed("<", step, n), body, after), self.module, loop, self.large)
        self.b.position_at_end(after)

    def copy(self, b: ir.IRBuilder, value: Any, root: Any, part: ir.Value) -> ir.Value:
        """Where a part of a loop has its own copy of a buffer."""
        offset, spacing = value(root.offset), value(root.spacing)
        if root.kind == "temp":
            part = b.add(part, ir.Constant(I64, 1))
        return b.inttoptr(b.add(self.work, b.add(offset, b.mul(part, spacing))), memory_type(root.code).as_pointer())

    def in_parts(self, parts: Any, size: Callable[[Emitter], ir.Value], body: Callable[..., None]) -> None:
        """Run parts, `body(emitter, low, high)`, on several threads where there are some; combine what they accumulated."""
        length = self.value(parts.size)
        count = self.b.sdiv(self.b.add(size(self), self.b.sub(length, ir.Constant(I64, 1))), length)
        kernel = self.outline(parts, size, body, {r for r in parts.private if not r.is_register})
        sums = [(root, how) for root, how in parts.private.items() if how is not None]
        for root, how in sums:
            each(self.b, count, lambda c, root=root, how=how: self.fill(root, how, c))
        self.spread(kernel, count)
        for root, how in sums:
            each(self.b, count, lambda c, root=root, how=how: self.gather(root, how, c))

    def spread(self, kernel: ir.Function, count: ir.Value) -> None:
        """Run a function for each part, on several threads where there are some."""
        context = self.entry.alloca(ir.ArrayType(I64, 5))
        for k, x in enumerate((self.arrays, self.sizes, self.literals, self.work, self.table)):
            self.b.store(x, self.b.gep(context, [ir.Constant(I64, 0), ir.Constant(I64, k)]))
        spread_over_threads(self.b, self.entry, self.module, kernel, count, context, self.work)

    def outline(self, parts: Any, size: Callable[[Emitter], ir.Value], body: Callable[..., None], private: set[Any]) -> ir.Function:
        """A function that runs one part."""
        function = self.new_function()
        inner = Emitter(function, self.program, private, self.given, self.scopes)
        assert inner.part is not None
        length = inner.value(parts.size)
        low = inner.b.mul(inner.part, length)
        end, n = inner.b.add(low, length), size(inner)
        body(inner, low, inner.b.select(inner.b.icmp_signed("<", end, n), end, n))
        inner.finish()
        return function

    def fill(self, root: Any, how: str, part: ir.Value) -> None:
        p = self.copy(self.b, self.value, root, part)
        neutral = {"add": 0, "multiply": 1, "maximum": lowest(root.code), "minimum": highest(root.code)}[how]
        each(
            self.b,
            self.value(self.program.entries(root)),
            lambda k: self.b.store(ir.Constant(memory_type(root.code), neutral), self.b.gep(p, [k])),
        )

    def gather(self, root: Any, how: str, part: ir.Value) -> None:
        p, out = self.copy(self.b, self.value, root, part), self.pointer(root)

        def one(k: ir.Value) -> None:
            where = self.b.gep(out, [k])
            self.b.store(self.combine(how, self.b.load(where), self.b.load(self.b.gep(p, [k])), root.code), where)

        each(self.b, self.value(self.program.entries(root)), one)

    def store(self, s: Any) -> None:
        for name, (buffer, index) in s.loads.items():
            self.env[name] = self.load(buffer, index)
        value = self.value(exgraph.split_rare([s.value])[0][0] if self.fast else s.value)
        where = self.address(s.buffer, s.index)
        if s.combine:
            old = self.read(where, s.buffer)
            value = self.combine(s.combine, old, value, s.buffer.code)
        if s.buffer.code == "bool":
            value = self.b.zext(value, I8)
        self.tag(self.b.store(value, where), s.buffer)

    def load(self, buffer: Any, index: Sequence[Any]) -> ir.Value:
        return self.read(self.address(buffer, index), buffer)

    def read(self, where: ir.Value, buffer: Any) -> ir.Value:
        value = self.b.load(where)
        self.tag(value, buffer)
        return self.b.trunc(value, ir.IntType(1)) if buffer.code == "bool" else value

    def combine(self, how: str, old: ir.Value, new: ir.Value, code: str) -> ir.Value:
        """One step of a reduction. Sums may be reordered into vector lanes: the order is fixed when the code is made."""
        if code in ("f32", "f64"):
            if how == "add":
                return self.b.fadd(old, new, flags=("reassoc", "contract"))
            if how == "multiply":
                return self.b.fmul(old, new, flags=("reassoc", "contract"))
            a, b = ex.var("a", code), ex.var("b", code)
            e = ex.maximum(a, b) if how == "maximum" else ex.minimum(a, b)
            return emit(self.b, self.module, [e], {"a": old, "b": new})[0]
        if how == "add":
            return self.b.add(old, new)
        if how == "multiply":
            return self.b.mul(old, new)
        compare = self.b.icmp_signed if code[0] == "i" else self.b.icmp_unsigned
        return self.b.select(compare(">" if how == "maximum" else "<", old, new), old, new)

    def tag(self, instruction: Any, buffer: Any) -> None:
        """Tell LLVM that different buffers do not overlap."""
        if buffer.root.is_register:
            return
        assert self.scopes is not None
        instruction.set_metadata("alias.scope", self.scopes.own[buffer.root])
        instruction.set_metadata("noalias", self.scopes.others[buffer.root])


class Scopes:
    """What the accesses of a node are marked with, by buffer."""

    def __init__(self, module: ir.Module, roots: Collection[Any], name: str) -> None:
        roots = sorted((r for r in roots if not r.is_register), key=lambda r: int(r.name[1:]))
        domain = module.add_metadata([ir.MetaDataString(module, name)])
        made = {r: module.add_metadata([ir.MetaDataString(module, f"{name}.{r.name}"), domain]) for r in roots}
        self.own = {r: module.add_metadata([made[r]]) for r in roots}
        self.others = {r: module.add_metadata([made[q] for q in roots if q is not r]) for r in roots}


def innermost(node: Any) -> int:
    """How many innermost loops there are in a node."""
    inside = sum(innermost(child) for body in getattr(node, "bodies", ()) for child in body)
    return inside or type(node).__name__ == "Loop"


def advise(branch: Any, module: ir.Module, loop: Any, large: bool) -> None:
    """Tell LLVM what is not worth its time in a large program: to work on several vectors at once, unless in sums."""
    if any(type(child).__name__ != "Store" for child in loop.body):
        return
    if loop.size.op == "const" and loop.extent > 1:
        advice: tuple[Any, ...] = ("llvm.loop.unroll.full",)
    elif large and (loop.size_of_code > _BUSY or not any(s.combine and s.buffer.root.is_register for s in loop.body)):
        advice = "llvm.loop.interleave.count", ir.Constant(I32, 1)
    else:
        return
    node = module.add_metadata([f"loop {len(module.metadata)}", list(advice)])
    node.operands = (node, *node.operands[1:])  # this is how LLVM knows the advice to be for one loop only
    branch.set_metadata("llvm.loop", node)


def rare_conditions(loop: Any) -> tuple[list[Any], dict[str, Any]]:
    """When an innermost loop needs what its expressions rarely need: conditions over loads, and those loads."""
    if any(type(child).__name__ != "Store" for child in loop.body):
        return [], {}
    registers: dict[Any, Any] = {}
    conditions: list[Any] = []
    loads: dict[str, Any] = {}
    for k, s in enumerate(loop.body):
        new = {}
        mine = {}
        for name, (buffer, index) in s.loads.items():
            old = ex.var(name, buffer.code)
            if buffer.root in registers:
                new[old] = registers[buffer.root]
            else:
                mine[f"{name}_{k}"] = buffer, tuple(exgraph.substitute(index, new))  # an index may have been loaded before
                new[old] = ex.var(f"{name}_{k}", buffer.code)
        (value,), found = exgraph.split_rare(exgraph.substitute([s.value], new))
        if found:
            conditions += found
        if s.buffer.root.is_register and s.combine is None:
            registers[s.buffer.root] = value
        loads.update(mine)
    used = {v.attr for v in exgraph.variables(conditions)}
    for name in reversed(loads):
        if name in used:
            used |= {v.attr for v in exgraph.variables(loads[name][1])}
    return conditions, {name: access for name, access in loads.items() if name in used}


def memory_type(code: str) -> ir.Type:
    return I8 if code == "bool" else TYPES[code]


def lowest(code: str) -> Any:
    return float("-inf") if code in ("f32", "f64") else 0 if code[0] in "ub" else -(1 << (int(code[1:]) - 1))


def highest(code: str) -> Any:
    if code in ("f32", "f64"):
        return float("inf")
    return 1 if code == "bool" else (1 << int(code[1:])) - 1 if code[0] == "u" else (1 << (int(code[1:]) - 1)) - 1
