"""The adjoint program as Python source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.loops.adjoint import Program
from fnad.loops.analysis import is_array
from fnad.loops.ir import Array, Block, Const, For, Function, If, Item, Op, Operand, Value, While, defined, walk
from fnad.loops.printer import Printer
from fnad.loops.prune import Pruner
from fnad.loops.spelling import PRODUCT, SUM, Expression, converted, dtype_name, element, within
from fnad.loops.support import HELPERS


def adjoint(fn: Function, wanted: Sequence[bool], value: bool, snapshots: int = -1) -> tuple[str, dict[str, Any]]:
    """Source of a function of `fn.args` and one cotangent per float result; it returns the gradients of the wanted arguments.

    With `value` the results of `fn` come before them. Also answers the names that the source needs besides `np` and `math`.
    """
    printer = _Adjoint(Program(fn, wanted, snapshots), value)
    return printer.text(), printer.namespace


class _Adjoint(Printer):
    def __init__(self, program: Program, value: bool) -> None:
        self.program = program
        fn = program.fn
        outputs: list[Operand] = []
        middle: list[Op] = []
        for r in fn.returns if value else ():
            if is_array(r):
                assert isinstance(r, Value)
                out = Value(program.names.fresh("out"), r.type)
                middle.append(Op("copy", (r,), out))
                outputs.append(out)
            else:
                outputs.append(r)
        own = [Op("copy", (a,), a) for a in fn.args if a in fn.written]
        args, returns = [*fn.args, *program.seeds], [*outputs, *program.gradients()]
        body = Block([*own, *program.forward.items, *middle, *program.backward.items])
        roots = program.memory.roots
        Pruner(body, returns, lambda v: roots.get(program.copies.get(v, v), frozenset()), value).prune()
        super().__init__(Function(f"{fn.name}_adjoint", args, body, returns, None, source=fn.source))
        self.namespace.update({v.name: a for v, a in fn.captured})
        self.lists: dict[Value, str] = {}
        self.begin = self._first_of_backward(body, {id(i) for i in program.backward.items} | {id(i) for i in middle})

    @staticmethod
    def _first_of_backward(body: Block, backward: set[int]) -> int:
        return next((k for k, item in enumerate(body.items) if id(item) in backward), len(body.items))

    def text(self) -> str:
        self._setup()
        return super().text()

    def _setup(self) -> None:
        kinds = {"f": False, "i": False}
        for item in walk(self.fn.body):
            if isinstance(item, Op) and item.kind == "push":
                for v in item.args[2 if "rows" in item.attrs else 0 :]:
                    kinds[self._tape(v)] = True
            if isinstance(item, Op) and item.kind == "keep":
                value = item.attrs["value"]
                self.lists[value] = self.program.names.fresh(f"{value.name}_list")
        self.tapes = [k for k, present in kinds.items() if present]

    @staticmethod
    def _tape(v: Operand | None) -> str:
        assert v is not None
        return "f" if v.type.dtype.kind == "f" else "i"

    def _block(self, block: Block) -> None:
        if block is self.fn.body:
            for k in self.tapes:
                self.put(f"tape_{k} = np.empty(1024, {'np.float64' if k == 'f' else 'np.int64'})")
                self.put(f"top_{k} = 0")
            for value, name in self.lists.items():
                self.put(f"{name} = [{self._sample(value)}]")
                self.put(f"{name}.pop()")
            super()._block(Block(block.items[: self.begin]))
            self.again()
            self.put("# backwards")
            super()._block(Block(block.items[self.begin :]))
            return
        super()._block(block)

    def _sample(self, value: Value) -> str:
        """An array or number of the type that the list holds."""
        if not isinstance(value.type, Array):
            return converted("0", value.type.dtype)
        dtype, rank = dtype_name(value.type.dtype), value.type.ndim
        original = self.program.copies.get(value, value)
        contiguous = self.program.origin.get(original, original) in self.program.memory.contiguous
        shape = ("0, " * rank + ("" if contiguous else "1,")).rstrip(" ")
        return f"np.empty(({shape}), {dtype})" + ("" if contiguous else "[..., 0]")

    def _op(self, op: Op) -> None:
        write = getattr(self, f"_{op.kind}_op", None)
        if write is None:
            super()._op(op)
        else:
            write(op)

    def _set_op(self, op: Op) -> None:
        target, value = op.args
        self._assign(self._read(target), value, op.line)

    def _acc_op(self, op: Op) -> None:
        self._increase(self._read(op.args[0]), op.args[1], op.line)

    def _acc_at_op(self, op: Op) -> None:
        array, *index, value = op.args
        self._increase(element(self._read(array), [self._read(i) for i in index]), value, op.line)

    def _increase(self, target: str, value: Operand | None, line: int) -> None:
        text = self._read(value)
        self.put(f"{target} -= {text[1:]}" if text.startswith("-") and getattr(text, "level", 0) >= 11 else f"{target} += {text}", line)

    def _call_op(self, op: Op) -> None:
        name = self.refer(HELPERS[op.attrs["name"]], op.attrs["name"])
        self.put(f"{name}({', '.join(self._read(a) for a in op.args)})", op.line)

    def _init_op(self, op: Op) -> None:
        assert op.out is not None
        self.put(f"{self.name(op.out)} = {converted('0', op.out.type.dtype)}")

    def entering(self, item: While) -> None:
        """What the last run of the condition keeps is dropped: no iteration follows it."""
        for k in self.tapes:
            self.put(f"before_{k} = top_{k}")

    def leaving(self, item: While) -> None:
        for k in self.tapes:
            self.put(f"top_{k} = before_{k}")

    def _for(self, item: For) -> None:
        push = self.program.rows.get(id(item))
        if push is None:
            if self.depth == 1:
                self._foresee(item)
            super()._for(item)
            return
        trips = self._trips(item.lo, item.hi, item.step)
        tapes = self._by_tape(push.args[2:])
        for k, values in tapes:
            self._room(k, _times(len(values), trips))
            self.put(f"{push.attrs['rows']}_{k} = tape_{k}[top_{k}:]")
        super()._for(item)
        for k, values in tapes:
            self.put(f"top_{k} += {_times(len(values), f'max({trips}, 0)')}")

    def _foresee(self, item: For) -> None:
        """Room for all iterations of a loop that stands alone, as far as it can be told before: a tape that grows is copied."""
        inside = {v for i in walk(item.body) for v in (*defined(i), *getattr(i, "params", ()), *([i.iv] if isinstance(i, For) else []))}
        inside |= {item.iv, *item.params}
        for k in self.tapes:
            need = self._need(item, k, inside)
            if need:
                self._room(k, need)

    def _need(self, item: Item, k: str, inside: set[Value]) -> str:
        """How many numbers the item keeps on a tape; an empty text where that is none or not known."""
        if isinstance(item, Op):
            count = len([v for v in item.args if v is not None and self._tape(v) == k]) if item.kind == "push" else 0
            return str(count) if count else ""
        if isinstance(item, If):
            needs = [self._together(b.items, k, inside) for b in (item.then, item.orelse)]
            return max(needs, key=len)
        if isinstance(item, While) or item.stop is not None or any(b in inside for b in (item.lo, item.hi, item.step)):
            return ""
        push = self.program.rows.get(id(item))
        if push is not None:
            each = str(sum(self._tape(v) == k for v in push.args[2:]) or "")
        else:
            each = self._together(item.body.items, k, inside)
        if not each or not (isinstance(item.step, Const) and item.step.value in (1, -1)):
            return ""
        trips = within(self._trips(item.lo, item.hi, item.step), PRODUCT)
        return trips if each == "1" else f"{each} * {trips}" if each.isdigit() else f"({each}) * {trips}"

    def _together(self, items: Sequence[Item], k: str, inside: set[Value]) -> str:
        return " + ".join(n for i in items if (n := self._need(i, k, inside)))

    def _trips(self, lo: Operand | None, hi: Operand | None, step: Operand | None) -> Expression:
        far, near = (hi, lo) if self._read(step) == "1" else (lo, hi)
        first, last = self._read(near), self._read(far)
        return last if first == "0" else Expression(f"{within(last, SUM)} - {within(first, PRODUCT)}", SUM)

    def _rewind_op(self, op: Op) -> None:
        trips = self._trips(*op.args)
        for k, values in self._by_tape(op.attrs["values"]):
            self.put(f"top_{k} -= {_times(len(values), f'max({trips}, 0)')}")
            self.put(f"{op.attrs['rows']}_{k} = tape_{k}[top_{k}:]")

    def _room(self, k: str, count: str) -> None:
        grow = self.refer(HELPERS["grow"], "grow")
        self.put(f"if top_{k} + {count} > tape_{k}.size:")
        self.put(f"    tape_{k} = {grow}(tape_{k}, top_{k} + {count})")

    def _slots(self, op: Op, k: str, count: int) -> list[str]:
        """Where the numbers of one kind lie: in the iteration's row, or on top of the tape."""
        if "rows" not in op.attrs:
            return [f"tape_{k}[{_plus(f'top_{k}', n)}]" for n in range(count)]
        last, first = (self._read(x) for x in op.args[:2])
        row = last if first == "0" else Expression(f"{within(last, SUM)} - {within(first, PRODUCT)}", SUM)
        return [f"{op.attrs['rows']}_{k}[{_plus(_times(count, row), n)}]" for n in range(count)]

    def _push_op(self, op: Op) -> None:
        rows = "rows" in op.attrs
        for k, values in self._by_tape(op.args[2:] if rows else op.args):
            if not rows:
                self._room(k, str(len(values)))
            for v, slot in zip(values, self._slots(op, k, len(values)), strict=True):
                self.put(f"{slot} = {self._read(v)}")
            if not rows:
                self.put(f"top_{k} += {len(values)}")

    def _pop_op(self, op: Op) -> None:
        for k, values in self._by_tape(op.attrs["values"]):
            if "rows" not in op.attrs:
                self.put(f"top_{k} -= {len(values)}")
            for v, slot in zip(values, self._slots(op, k, len(values)), strict=True):
                exact = v.type.dtype == (np.float64 if k == "f" else np.int64)
                self.put(f"{self.name(v)} = {slot if exact else converted(slot, v.type.dtype)}")

    def _by_tape(self, values: Iterable[Any]) -> list[tuple[str, list[Any]]]:
        every = list(values)
        return [(k, found) for k in ("f", "i") if (found := [v for v in every if self._tape(v) == k])]

    def _keep_op(self, op: Op) -> None:
        self.put(f"{self.lists[op.attrs['value']]}.append({self._read(op.args[0])})")

    def _take_op(self, op: Op) -> None:
        assert op.out is not None
        self.put(f"{self.name(op.out)} = {self.lists[op.attrs['value']]}.pop()")


def _times(count: int, text: Expression | str) -> str:
    return within(text, PRODUCT) if count == 1 else f"{count} * {within(text, PRODUCT)}"


def _plus(text: str, n: int) -> str:
    return f"{text} + {n}" if n else text
