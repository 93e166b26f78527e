"""The text of a program: what its key is made from, and what `explain` prints of the loop IR."""

from __future__ import annotations

import hashlib
from typing import Any

from fnad.kernels.codegen import graph as exgraph


def describe(program: Any) -> str:
    """One line per node; equal texts mean equal machine code."""
    lines: list[str] = []
    for root in program.roots:
        where = (
            program.slot(root)
            if root.kind in ("input", "output")
            else "flag"
            if root.kind == "flag"
            else "register"
            if root.is_register
            else show(root.offset)
        )
        lines.append(f"{root.name} {root.code} {root.kind} {where}")
    for node in program.nodes:
        _node(program, node, "", lines)
    return "\n".join(lines)


def describe_node(program: Any, node: Any) -> str:
    """The lines of one node."""
    lines: list[str] = []
    _node(program, node, "", lines)
    return "\n".join(lines)


def _node(program: Any, node: Any, pad: str, lines: list[str]) -> None:
    kind = type(node).__name__
    if kind == "Loop":
        _body(
            program,
            f"{pad}for {','.join(program.variables(node))} < {show(node.size)}:{_parts(program, node)}{_pause(node)}",
            node.body,
            pad,
            lines,
        )
    elif kind == "While":
        _body(program, f"{pad}test:", node.bodies[0], pad, lines)
        _body(program, f"{pad}while {access(program, node.going, ())}:{_pause(node)}", node.bodies[1], pad, lines)
    elif kind == "Branch":
        for k, body in enumerate(node.bodies):
            _body(program, f"{pad}if {access(program, node.chosen, ())} is {k}:", body, pad, lines)
    elif kind == "Store":
        for name, (buffer, index) in node.loads.items():
            lines.append(f"{pad}{name} = {access(program, buffer, index)}")
        sign = {"add": "+=", "multiply": "*=", None: "="}.get(node.combine, f"{node.combine}=")
        lines.append(f"{pad}{access(program, node.buffer, node.index)} {sign} {show(node.value)}")
    elif kind == "Lapack":
        numbers = ",".join(map(show, node.numbers))
        lines.append(f"{pad}lapack:{node.kernel} {numbers} {' '.join(map(whole, node.buffers))}  # host {node.number} if it fails")
    elif kind == "Foreign":
        numbers = ",".join(map(show, node.numbers))
        operands = " ".join(map(whole, (*node.inputs, *node.outputs)))
        lines.append(f"{pad}call {show(node.address)} {numbers} {operands}  # host {node.number} if it fails")
    elif kind == "Host":
        lines.append(f"{pad}host {node.number} {node.equation.primitive.name} {' '.join(map(whole, node.buffers))}")
    else:
        (left, lt, lb), (right, rt, rb) = node.left, node.right
        numbers = ",".join(show(n) for n in node.numbers)
        operands = f"{whole(left)}{'.T' * lt}{'*' * lb} {whole(right)}{'.T' * rt}{'*' * rb}"
        way = f"{node.batch == 1} {node.guard}{' columns' * node.by_columns}{_parts(program, node)}"
        lines.append(f"{pad}{whole(node.out)} = gemm:{node.out.code} {operands} {numbers} {way}")
        if node.after:
            lines.append(f"{pad}after each piece:")
            _node(program, node.after, f"{pad}  ", lines)


def _body(program: Any, head: str, nodes: Any, pad: str, lines: list[str]) -> None:
    lines.append(head)
    for node in nodes:
        _node(program, node, pad + "  ", lines)


def whole(buffer: Any) -> str:
    return str(buffer.root.name) if buffer.shift is None else f"{buffer.root.name}+{show(buffer.shift)}"


def _parts(program: Any, node: Any) -> str:
    if node.parts is None:
        return ""
    copies = []
    for b, how in node.parts.private.items():
        own = f" {show(program.entries(b))} entries at {show(b.offset)} + part*{show(b.spacing)}" if b.spacing is not None else ""
        copies.append(f"{b.name} {how}{own}")
    return f"  # in parts of {show(node.parts.size)}; private {', '.join(copies)}"


def _pause(node: Any) -> str:
    return "" if node.pause is None else f"  # looks for signals every {show(node.pause)}"


def access(program: Any, buffer: Any, index: Any) -> str:
    if buffer.root.is_register:
        return str(buffer.root.name)
    offset = program.offset(buffer, index)
    return f"{buffer.root.name}[{'0' if offset is None else show(offset)}]"


_SIGNS = {"add": "+", "sub": "-", "mul": "*"}


def inline(e: Any) -> str | None:
    """A sum of products of integers, as one would write it; None for anything else."""
    if e.op in ("var", "const"):
        return str(e.attr)
    if e.dtype != "i64" or e.op not in _SIGNS:
        return None
    a, b = map(inline, e.args)
    if a is None or b is None:
        return None
    if e.op == "mul":
        a, b = (f"({x})" if y.op in ("add", "sub") else x for x, y in ((a, e.args[0]), (b, e.args[1])))
    elif e.op == "sub" and e.args[1].op in ("add", "sub"):
        b = f"({b})"
    return f"{a} {_SIGNS[e.op]} {b}"


def hash_of(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:12]


def show(e: Any) -> str:
    """An expression; what is used several times is named."""
    names: dict[Any, str] = {}
    lines: list[str] = []
    plain = inline(e)
    if plain is not None:
        return plain
    for node in exgraph.ordered([e]):
        if node.op in ("var", "const"):
            names[node] = str(node.attr)
        else:
            extra = "" if node.attr is None else f".{hash_of(node.attr)}" if isinstance(node.attr, tuple) else f".{node.attr}"
            names[node] = f"t{len(lines)}"
            lines.append(f"{node.op}{extra}:{node.dtype}({' '.join(names[a] for a in node.args)})")
    return "; ".join([*lines, names[e]]) if lines else names[e]
