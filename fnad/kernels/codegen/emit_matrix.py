"""The printer of matrix products: `C = A @ B` in tiles that stay in registers (Goto and van de Geijn, ACM TOMS 34, 2008).

Blocks of B are packed so that a tile reads them in order; they stay in the second-level cache while the rows of A pass. What an
entry of C is summed from, and in which order, depends on its row alone: products may be divided by rows among threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from fnad.kernels.codegen.counting import I64, each, steps, word
from fnad.kernels.codegen.llvm_expr import TYPES

_DEPTH = 256  # terms summed at a time
_LINE = 768  # about how many bytes of a row of B are packed at a time
_SMALL = 1 << 14  # bytes of packed B that are taken from the stack
_FEW = 32  # rows up to which B is read where it lies, if it can be


class Tile(NamedTuple):
    """What fits into the registers: `rows` times `vectors` of so many bytes, besides one row of B."""

    bytes: int
    rows: int
    vectors: int


def tile_for(features: str) -> Tile:
    """The tile for a processor."""
    known = features.split(",")
    if "+avx512f" in known:
        return Tile(64, 8, 3)
    return Tile(32, 4, 3) if "+avx" in known else Tile(16, 4, 3)


def print_gemm(name: str, code: str, tile: Tile) -> str:
    """A module with the function `(m, n, k, a, row, column, b, row, column, c, row, after, context)`: addresses, and strides in entries.

    If `after` is not 0, `after(context, row, end, column, end)` is called for each piece of C when it is done.
    """
    module = ir.Module(name)
    _Product(module, name, code, tile).run()
    wide = f' "prefer-vector-width"="{8 * tile.bytes}" "min-legal-vector-width"="{8 * tile.bytes}"'
    return "\n".join(line + wide if line.startswith("define ") else line for line in str(module).splitlines())


def call_after(b: ir.IRBuilder, function: ir.Function, *bounds: ir.Value) -> None:
    """Call what is to follow a piece of a product, if there is something."""
    after, context = function.args[11:]
    with b.if_then(b.icmp_signed("!=", after, word(0))):
        kind = ir.FunctionType(ir.VoidType(), [I64] * 5)
        b.call(b.inttoptr(after, kind.as_pointer()), [context, *bounds])


class _Printer:
    """Small things."""

    def __init__(self, module: ir.Module, name: str, count: int, code: str) -> None:
        self.real = TYPES[code]
        self.size = 4 if code == "f32" else 8
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * count), name)
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.first = self.function.append_basic_block("body")
        self.b = ir.IRBuilder(self.first)

    def finish(self) -> None:
        self.b.ret_void()
        self.entry.branch(self.first)

    def either(self, condition: ir.Value, yes: Callable[[], None], no: Callable[[], None]) -> None:
        blocks = [self.b.append_basic_block(name) for name in ("yes", "no", "after")]
        self.b.cbranch(condition, *blocks[:2])
        for block, body in zip(blocks, (yes, no), strict=False):
            self.b.position_at_end(block)
            body()
            self.b.branch(blocks[2])
        self.b.position_at_end(blocks[2])

    def when(self, condition: ir.Value, body: Callable[[], None]) -> None:
        self.either(condition, body, lambda: None)

    def least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed("<", a, b), a, b)

    def at(self, base: ir.Value, *terms: ir.Value | tuple[ir.Value, ir.Value]) -> ir.Value:
        """The address of an entry: numbers, and products of two, added up."""
        for term in terms:
            entries = self.b.mul(*term) if isinstance(term, tuple) else term
            base = self.b.add(base, self.b.mul(entries, word(self.size)))
        return base

    def pointer(self, address: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        return self.b.inttoptr(address, (kind or self.real).as_pointer())

    def load(self, address: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        return self.b.load(self.pointer(address, kind), align=self.size)

    def store(self, value: ir.Value, address: ir.Value) -> None:
        self.b.store(value, self.pointer(address, value.type), align=self.size)

    def room(self, entries: int) -> ir.Value:
        """The address of memory on the stack."""
        made = self.entry.alloca(ir.ArrayType(self.real, entries))
        made.align = 64
        return self.entry.ptrtoint(made, I64)


class _Tile(_Printer):
    """`(k, a, row, column, b, row, c, row, lanes, fresh)`: one tile of C gets, or if it is not fresh is increased by, a product.

    Of the last of its vectors only so many lanes are in C.
    """

    def __init__(self, module: ir.Module, name: str, code: str, rows: int, vectors: int, width: int) -> None:
        super().__init__(module, name, 10, code)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.rows, self.vectors, self.width = rows, vectors, width
        self.vector = ir.VectorType(self.real, width)

    def run(self) -> None:
        k, a, a_row, a_column, b, b_row, *_ = self.function.args
        zero = ir.Constant(self.vector, None)
        sums: list[ir.Value] = [zero] * (self.rows * self.vectors)
        starts = [self.at(a, (word(i), a_row)) for i in range(self.rows)]
        before, inside, after = self.b.block, self.b.append_basic_block("terms"), self.b.append_basic_block("after")
        self.b.branch(inside)  # k > 0
        self.b.position_at_end(inside)
        p = self.b.phi(I64)
        p.add_incoming(word(0), before)
        found = [self.b.phi(self.vector) for _ in sums]
        for phi in found:
            phi.add_incoming(zero, before)
        row = self.at(b, (p, b_row))
        columns = [self.load(self.at(row, word(v * self.width)), self.vector) for v in range(self.vectors)]
        offset = self.b.mul(self.b.mul(p, a_column), word(self.size))
        sums = []
        for i, start in enumerate(starts):
            x = self.splat(self.load(self.b.add(start, offset)))
            for v, column in enumerate(columns):
                product = self.b.fmul(x, column, flags=("contract",))
                sums.append(self.b.fadd(found[i * self.vectors + v], product, flags=("contract",)))
        following = self.b.add(p, word(1), flags=("nsw",))
        p.add_incoming(following, inside)
        for phi, value in zip(found, sums, strict=True):
            phi.add_incoming(value, inside)
        self.b.cbranch(self.b.icmp_signed("<", following, k), inside, after)
        self.b.position_at_end(after)
        self.leave(sums)
        self.finish()

    def splat(self, x: ir.Value) -> ir.Value:
        one = self.b.insert_element(ir.Constant(self.vector, ir.Undefined), x, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.b.shuffle_vector(one, ir.Constant(self.vector, ir.Undefined), mask)

    def leave(self, sums: Sequence[ir.Value]) -> None:
        c, row, lanes, fresh = self.function.args[6:]
        new = self.b.icmp_signed("!=", fresh, word(0))
        last = self.vectors - 1
        at = [(self.at(c, (word(i), row), word(v * self.width)), v) for i in range(self.rows) for v in range(self.vectors)]

        def put(value: ir.Value, where: ir.Value) -> None:
            old = self.b.select(new, ir.Constant(value.type, None), self.load(where, value.type))
            self.store(self.b.fadd(value, old), where)

        for value, (where, v) in zip(sums, at, strict=True):
            if v < last:
                put(value, where)

        def whole() -> None:
            for value, (where, v) in zip(sums, at, strict=True):
                if v == last:
                    put(value, where)

        def some() -> None:
            spare = self.room(self.rows * self.width)
            for i in range(self.rows):
                self.store(sums[i * self.vectors + last], self.at(spare, word(i * self.width)))

            def entry(i: ir.Value, j: ir.Value) -> None:
                put(self.load(self.at(spare, (i, word(self.width)), j)), self.at(c, (i, row), word(last * self.width), j))

            each(self.b, word(self.rows), lambda i: each(self.b, lanes, lambda j: entry(i, j)))

        self.either(self.b.icmp_signed("==", lanes, word(self.width)), whole, some)


class _Product(_Printer):
    def __init__(self, module: ir.Module, name: str, code: str, tile: Tile) -> None:
        super().__init__(module, name, 13, code)
        self.rows, self.vectors, self.width = tile.rows, tile.vectors, tile.bytes // self.size
        self.vector = ir.VectorType(self.real, self.width)
        self.panel = self.vectors * self.width  # columns of a tile
        self.block = self.panel * max(1, _LINE // (self.panel * self.size))
        self.counts = sorted({tile.rows, 4, 1}, reverse=True)
        self.tiles: dict[tuple[int, int], ir.Function] = {}
        for r in self.counts:
            for v in (1, self.vectors):
                made = _Tile(module, f"{name}_{r}_{v}", code, r, v, self.width)
                made.run()
                self.tiles[r, v] = made.function

    def run(self) -> None:
        _, n, k = self.function.args[:3]
        columns = self.b.mul(self.b.sdiv(self.b.add(n, word(self.panel - 1)), word(self.panel)), word(self.panel))
        entries = self.b.mul(self.least(k, word(_DEPTH)), self.least(columns, word(self.block)))
        self.packed_a = self.room(_DEPTH * self.rows)
        self.packed_b, borrowed = self.borrow(entries)
        self.when(self.b.icmp_signed("<=", k, word(0)), self.clear)
        steps(self.b, word(0), n, word(self.block), lambda j: steps(self.b, word(0), k, word(_DEPTH), lambda p: self.part(j, p)))
        self.when(self.b.icmp_signed("!=", borrowed, word(0)), lambda: self.b.call(self.c_function("free", ir.VoidType()), [borrowed]))
        self.finish()

    def borrow(self, entries: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The address of memory for packed entries, and what is to be freed: threads may have a stack that is smaller than a block of B."""
        place, borrowed = self.entry.alloca(I64), self.entry.alloca(I64)
        self.b.store(self.room(_SMALL // self.size), place)
        self.b.store(word(0), borrowed)

        def get() -> None:
            found = self.b.call(self.c_function("malloc", I64), [self.b.add(self.b.mul(entries, word(self.size)), word(63))])
            self.b.store(found, borrowed)
            self.b.store(self.b.and_(self.b.add(found, word(63)), word(-64)), place)
            self.when(self.b.icmp_signed("==", found, word(0)), on_the_stack)

        def on_the_stack() -> None:
            made = self.b.alloca(self.real, _DEPTH * self.block)
            made.align = 64
            self.b.store(self.b.ptrtoint(made, I64), place)

        self.when(self.b.icmp_signed(">", self.b.mul(entries, word(self.size)), word(_SMALL)), get)
        return self.b.load(place), self.b.load(borrowed)

    def c_function(self, name: str, result: ir.Type) -> ir.Function:
        module = self.function.module
        return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, [I64]), name)

    def clear(self) -> None:
        m, n, *_ = self.function.args
        c, row = self.function.args[9:11]
        zero = ir.Constant(self.real, 0.0)
        each(self.b, m, lambda i: each(self.b, n, lambda j: self.store(zero, self.at(c, (i, row), j))))
        call_after(self.b, self.function, word(0), m, word(0), n)

    def part(self, j: ir.Value, p: ir.Value) -> None:
        """What some columns of B, and some of its rows, contribute."""
        m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, *_ = self.function.args
        columns, depth = self.least(word(self.block), self.b.sub(n, j)), self.least(word(_DEPTH), self.b.sub(k, p))
        here = self.at(b, (p, b_row), (j, b_column))
        in_order = self.b.icmp_signed("==", b_column, word(1))
        whole = self.b.icmp_signed("==", self.b.srem(n, word(self.width)), word(0))
        direct = self.b.and_(self.b.and_(in_order, whole), self.b.icmp_signed("<=", m, word(_FEW)))
        self.when(self.b.not_(direct), lambda: self.pack_b(here, columns, depth))
        fresh = self.b.zext(self.b.icmp_signed("==", p, word(0)), I64)
        streams = self.b.icmp_signed("==", a_column, word(1))
        last = self.b.icmp_signed("==", self.b.add(p, depth), k)

        def block(i: ir.Value, rows: int) -> None:
            start = self.at(a, (i, a_row), (p, a_column))
            self.when(self.b.not_(streams), lambda: self.pack_a(start, rows, depth))
            left = (
                self.b.select(streams, start, self.packed_a),
                self.b.select(streams, a_row, word(1)),
                self.b.select(streams, word(1), word(self.rows)),
            )

            def columns_from(first: ir.Value) -> None:
                rest = self.least(word(self.panel), self.b.sub(columns, first))
                right = (
                    self.b.select(direct, self.at(here, first), self.at(self.packed_b, (first, depth))),
                    self.b.select(direct, b_row, word(self.panel)),
                )
                self.tile(rows, rest, depth, (*left, *right, self.at(c, (i, c_row), self.b.add(j, first)), c_row), fresh)

            steps(self.b, word(0), columns, word(self.panel), columns_from)
            ends = self.b.add(i, word(rows)), self.b.add(j, columns)
            self.when(last, lambda: call_after(self.b, self.function, i, ends[0], j, ends[1]))

        done = word(0)
        for rows in self.counts:
            stop = self.b.sub(m, self.b.srem(self.b.sub(m, done), word(rows)))
            steps(self.b, done, stop, word(rows), lambda i, r=rows: block(i, r))
            done = stop

    def tile(self, rows: int, columns: ir.Value, depth: ir.Value, sides: Sequence[ir.Value], fresh: ir.Value) -> None:
        """Call the function for a tile, or for each vector of a narrower one."""
        *left, right, right_row, out, out_row = sides

        def call(vectors: int, first: ir.Value) -> None:
            lanes = self.least(word(self.width), self.b.sub(columns, self.b.add(first, word((vectors - 1) * self.width))))
            places = self.at(right, first), right_row, self.at(out, first), out_row
            self.b.call(self.tiles[rows, vectors], [depth, *left, *places, lanes, fresh])

        self.either(
            self.b.icmp_signed(">", columns, word((self.vectors - 1) * self.width)),
            lambda: call(self.vectors, word(0)),
            lambda: steps(self.b, word(0), columns, word(self.width), lambda first: call(1, first)),
        )

    def pack_a(self, start: ir.Value, rows: int, depth: ir.Value) -> None:
        """Rows of A, the entries of one column beside each other."""
        _, _, _, _, row, column, *_ = self.function.args
        kind = ir.VectorType(self.real, rows)

        def beside() -> None:
            def copy(p: ir.Value) -> None:
                self.store(self.load(self.at(start, (p, column)), kind), self.at(self.packed_a, (p, word(self.rows))))

            each(self.b, depth, copy)

        def apart() -> None:
            def copy(p: ir.Value) -> None:
                to = self.at(self.packed_a, (p, word(self.rows)))
                for i in range(rows):
                    self.store(self.load(self.at(start, (p, column), (word(i), row))), self.at(to, word(i)))

            each(self.b, depth, copy)

        self.either(self.b.icmp_signed("==", row, word(1)), beside, apart)

    def pack_b(self, start: ir.Value, columns: ir.Value, depth: ir.Value) -> None:
        """Panels of so many columns as a tile has, one row of a panel after the other."""
        row, column = self.function.args[7:9]

        def vector(first: ir.Value) -> None:
            panel = self.b.mul(self.b.sdiv(first, word(self.panel)), word(self.panel))
            to = self.at(self.packed_b, (panel, depth), self.b.sub(first, panel))
            here = self.at(start, (first, column))
            rest = self.b.sub(columns, first)
            full = self.b.icmp_signed(">=", rest, word(self.width))

            def by_entries(begin: ir.Value) -> None:
                count = self.least(rest, word(self.width))

                def copy(p: ir.Value) -> None:
                    line = self.at(to, (p, word(self.panel)))
                    each(self.b, count, lambda j: self.store(self.load(self.at(here, (p, row), (j, column))), self.at(line, j)))
                    zero = ir.Constant(self.real, 0.0)
                    steps(self.b, count, word(self.width), word(1), lambda j: self.store(zero, self.at(line, j)))

                steps(self.b, begin, depth, word(1), copy)

            def by_rows() -> None:
                each(
                    self.b, depth, lambda p: self.store(self.load(self.at(here, (p, row)), self.vector), self.at(to, (p, word(self.panel))))
                )

            def by_columns() -> None:
                most = self.b.mul(self.b.sdiv(depth, word(self.width)), word(self.width))
                steps(
                    self.b,
                    word(0),
                    most,
                    word(self.width),
                    lambda p: self.turn(self.at(here, p), column, self.at(to, (p, word(self.panel)))),
                )
                by_entries(most)

            def ordered() -> None:
                self.either(
                    self.b.icmp_signed("==", column, word(1)), by_rows, lambda: self.either(down, by_columns, lambda: by_entries(word(0)))
                )

            down = self.b.icmp_signed("==", row, word(1))
            self.either(full, ordered, lambda: by_entries(word(0)))

        steps(self.b, word(0), columns, word(self.width), vector)

    def turn(self, start: ir.Value, column: ir.Value, to: ir.Value) -> None:
        """Copy a square of `width` columns, stored one after the other, to rows: halves are exchanged in log2(width) rounds."""
        lines = [self.load(self.at(start, (word(j), column)), self.vector) for j in range(self.width)]
        half = self.width // 2
        low = [x // 2 + (x % 2) * self.width for x in range(self.width)]
        for _ in range(self.width.bit_length() - 1):
            lines = [self.woven(lines[i], lines[i + half], low, part) for i in range(half) for part in (0, 1)]
        for p, line in enumerate(lines):
            self.store(line, self.at(to, (word(p), word(self.panel))))

    def woven(self, a: ir.Value, b: ir.Value, low: Sequence[int], part: int) -> ir.Value:
        """Entries of two vectors in turn: of their first halves, or of their second."""
        kind = ir.VectorType(ir.IntType(32), self.width)
        return self.b.shuffle_vector(a, b, ir.Constant(kind, [x + part * (self.width // 2) for x in low]))
