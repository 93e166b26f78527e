"""Loops around scalar expressions, compiled by LLVM for this machine, as the tests of expressions need them."""

import ctypes
import functools
import itertools

import numpy as np
from llvmlite import ir

from fnad import _llvm
from fnad.kernels.codegen.expr import DTYPES, var
from fnad.kernels.codegen.llvm_expr import TYPES, emit

_numbers = itertools.count()


class Loop:
    """`for i in range(n): out[k][i] = expression k of x0[i], x1[i], ...`"""

    def __init__(self, build, *dtypes):
        arguments = [var(f"x{i}", dtype) for i, dtype in enumerate(dtypes)]
        built = build(*arguments)
        self.exprs = built if isinstance(built, list) else [built]
        self.single = built is not self.exprs
        self.name = f"loop{next(_numbers)}"
        module = self._module(arguments)
        text = str(module)
        self.assembly = _llvm.assembly(text)
        self._address = _llvm.load(_llvm.machine_code(text), self.name)
        self.arguments = arguments

    def _module(self, arguments):
        module = ir.Module()
        word = ir.IntType(64)
        kinds = [_memory(x.dtype) for x in arguments + self.exprs]
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [k.as_pointer() for k in kinds] + [word]), self.name)
        for argument in function.args[:-1]:
            argument.add_attribute("noalias")
        entry, body, end = (function.append_basic_block(name) for name in ("entry", "body", "end"))
        builder = ir.IRBuilder(entry)
        size = function.args[-1]
        builder.cbranch(builder.icmp_signed(">", size, ir.Constant(word, 0)), body, end)
        builder.position_at_end(body)
        i = builder.phi(word)
        i.add_incoming(ir.Constant(word, 0), entry)
        loaded = {}
        for x, pointer in zip(arguments, function.args, strict=False):
            value = builder.load(builder.gep(pointer, [i]))
            loaded[x.attr] = builder.trunc(value, TYPES["bool"]) if x.dtype == "bool" else value
        for value, pointer in zip(emit(builder, module, self.exprs, loaded), function.args[len(arguments) :], strict=False):
            builder.store(builder.zext(value, ir.IntType(8)) if value.type == TYPES["bool"] else value, builder.gep(pointer, [i]))
        following = builder.add(i, ir.Constant(word, 1), flags=("nsw",))
        i.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, size), body, end)
        builder.position_at_end(end)
        builder.ret_void()
        return module

    def __call__(self, *arrays):
        run = self.bound(*[np.ascontiguousarray(a, DTYPES[x.dtype]) for a, x in zip(arrays, self.arguments, strict=True)])
        run()
        return run.outs[0] if self.single else run.outs

    def bound(self, *arrays):
        """A function without arguments that runs the loop over contiguous arrays of the right dtypes."""
        outs = [np.empty(arrays[0].shape, DTYPES[e.dtype]) for e in self.exprs]
        every = [*arrays, *outs]
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(every), ctypes.c_int64)(self._address)
        call = functools.partial(run, *[a.ctypes.data for a in every], arrays[0].size)
        call.outs, call.alive = outs, (self, every)
        return call


def _memory(dtype):
    return ir.IntType(8) if dtype == "bool" else TYPES[dtype]
