"""Statements without jumps: `break`, `continue` and early `return` become branches and flags; what is live where."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn

VALUE = ".value"
"""The name that holds what the function returns (no name of the user's has a dot)."""
RETURNED = ".returned"


@dataclass(eq=False, slots=True)
class Plain:
    """A statement without a body."""

    node: ast.stmt


@dataclass(eq=False, slots=True)
class Flag:
    """`name = value`, for a flag that stands for a jump."""

    name: str
    value: bool
    node: ast.stmt


@dataclass(eq=False, slots=True)
class Result:
    """The result of the function becomes known."""

    node: ast.Return


@dataclass(eq=False, slots=True)
class Branch:
    """An `if`; `live` are the names that may be read after it."""

    node: ast.stmt
    test: ast.expr
    then: list[Statement]
    orelse: list[Statement]
    live: frozenset[str] = frozenset()


@dataclass(eq=False, slots=True)
class Loop:
    """A `for` or `while`; `stop` names the flag of its `break`, `head` are the names that the next iteration may read."""

    node: ast.For | ast.While
    body: list[Statement]
    stop: str | None
    head: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()


Statement = Plain | Flag | Result | Branch | Loop
Refuse = Callable[[ast.AST, str, str], NoReturn]


@dataclass
class _Lowering:
    refuse: Refuse
    stops: list[str | None] = field(default_factory=list)
    count: int = 0

    def fresh(self, what: str) -> str:
        self.count += 1
        return f".{what}{self.count}"

    def lower(self, statements: list[ast.stmt], skip: str | None) -> list[Statement]:
        """The statements without jumps; a jump sets the flag `skip`, where something follows that must be skipped then."""
        out: list[Statement] = []
        for k, node in enumerate(statements):
            rest = statements[k + 1 :]
            if isinstance(node, ast.Break | ast.Continue | ast.Return):
                return out + self.jump(node, skip)
            if isinstance(node, ast.If) and _jumps([node]):
                return out + self.branch(node, rest, skip)
            if isinstance(node, ast.If):
                out.append(Branch(node, node.test, self.lower(node.body, None), self.lower(node.orelse, None)))
            elif isinstance(node, ast.For | ast.While):
                loop = self.loop(node)
                if _returns(node.body):
                    after = Branch(node, _name(RETURNED, node), self.leave(node, skip), self.lower(rest, skip))
                    return [*out, Flag(RETURNED, False, node), loop, after]
                out.append(loop)
            else:
                out.append(Plain(node))
        return out

    def branch(self, node: ast.If, rest: list[ast.stmt], skip: str | None) -> list[Statement]:
        then, orelse = node.body, node.orelse
        if not _falls(then) or not rest:
            return [Branch(node, node.test, self.lower(then, skip), self.lower(orelse + rest, skip))]
        if not _falls(orelse):
            return [Branch(node, node.test, self.lower(then + rest, skip), self.lower(orelse, skip))]
        flag = self.fresh("skip")
        first = Branch(node, node.test, self.lower(then, flag), self.lower(orelse, flag))
        jumped: list[Statement] = [Flag(skip, True, node)] if skip else []
        return [Flag(flag, False, node), first, Branch(node, _name(flag, node), jumped, self.lower(rest, skip))]

    def loop(self, node: ast.For | ast.While) -> Loop:
        if node.orelse:
            self.refuse(node.orelse[0], "`else` of a loop cannot be differentiated", "set a flag before `break` and test it after the loop")
        stop = self.fresh("stop") if _breaks(node.body) or _returns(node.body) else None
        self.stops.append(stop)
        body = self.lower(node.body, None)
        self.stops.pop()
        return Loop(node, [Flag(stop, False, node), *body] if stop else body, stop)

    def jump(self, node: ast.Break | ast.Continue | ast.Return, skip: str | None) -> list[Statement]:
        if isinstance(node, ast.Continue):
            return [Flag(skip, True, node)] if skip else []
        if isinstance(node, ast.Break):
            return self.leave(node, skip)
        returned: list[Statement] = [Flag(RETURNED, True, node)] if self.stops else []
        return [Result(node), *returned, *self.leave(node, skip)]

    def leave(self, node: ast.stmt, skip: str | None) -> list[Statement]:
        """End the innermost loop, if there is one, and skip what follows."""
        names = [self.stops[-1] if self.stops else None, skip]
        return [Flag(name, True, node) for name in names if name]


def _name(name: str, node: ast.stmt) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def _inner(node: ast.stmt, loops: bool) -> Iterable[list[ast.stmt]]:
    if isinstance(node, ast.If) or (loops and isinstance(node, ast.For | ast.While)):
        yield node.body
        yield node.orelse


def _returns(statements: list[ast.stmt]) -> bool:
    return any(isinstance(s, ast.Return) or any(map(_returns, _inner(s, True))) for s in statements)


def _breaks(statements: list[ast.stmt]) -> bool:
    return any(isinstance(s, ast.Break) or any(map(_breaks, _inner(s, False))) for s in statements)


def _jumps(statements: list[ast.stmt]) -> bool:
    jumps = ast.Break | ast.Continue | ast.Return
    return _returns(statements) or any(isinstance(s, jumps) or any(map(_jumps, _inner(s, False))) for s in statements)


def _falls(statements: list[ast.stmt]) -> bool:
    """Whether the end of the statements may be reached."""
    for s in statements:
        if isinstance(s, ast.Break | ast.Continue | ast.Return | ast.Raise):
            return False
        if isinstance(s, ast.If) and not _falls(s.body) and not _falls(s.orelse):
            return False
        if isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value and not _breaks(s.body):
            return False
    return True


def lower(node: ast.FunctionDef | ast.Lambda, refuse: Refuse) -> list[Statement]:
    """The body of a function as statements without jumps, each with what is live after it."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    else:
        body = node.body
    if _returns(body) and _falls(body):  # what falls off the end returns None
        last = ast.copy_location(ast.Return(None), body[-1])
        body = [*body, last]
    statements = _Lowering(refuse).lower(body, None)
    inner = [n for n in ast.walk(node) if n is not node and isinstance(n, ast.FunctionDef | ast.Lambda)]
    always = frozenset(name for function in inner for name in reads(function))  # a closure reads them when it is called
    _live(statements, always | {VALUE})
    return statements


def reads(node: ast.AST | None) -> frozenset[str]:
    """The names that are read somewhere in a tree."""
    if node is None:
        return frozenset()
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _writes(node: ast.AST) -> frozenset[str]:
    """The names that a statement without a body, or the target of a loop, binds."""
    if isinstance(node, ast.FunctionDef):
        return frozenset({node.name})
    if isinstance(node, ast.Name):
        return frozenset({node.id} if isinstance(node.ctx, ast.Store) else ())
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | ast.Lambda | ast.For | ast.While | ast.If):
        return frozenset()  # names of their own
    return frozenset(name for child in ast.iter_child_nodes(node) for name in _writes(child))


def assigned(statements: Iterable[Statement]) -> frozenset[str]:
    """Every name that the statements may bind."""
    names: frozenset[str] = frozenset()
    for s in statements:
        if isinstance(s, Plain):
            names |= _writes(s.node)
        elif isinstance(s, Branch):
            names |= assigned(s.then) | assigned(s.orelse)
        elif isinstance(s, Loop):
            names |= assigned(s.body) | (_writes(s.node.target) if isinstance(s.node, ast.For) else frozenset())
        else:
            names |= {VALUE if isinstance(s, Result) else s.name}
    return names


def _live(statements: list[Statement], after: frozenset[str]) -> frozenset[str]:
    """The names that may be read from the start of the statements on; what is live after each is noted on the way."""
    for s in reversed(statements):
        if isinstance(s, Plain):
            again = reads(s.node.target) | _writes(s.node.target) if isinstance(s.node, ast.AugAssign) else frozenset()
            after = (after - _writes(s.node)) | reads(s.node) | again
        elif isinstance(s, Flag):
            after = after - {s.name}
        elif isinstance(s, Result):
            after = (after - {VALUE}) | reads(s.node)
        elif isinstance(s, Branch):
            s.live = after
            after = reads(s.test) | _live(s.then, after) | _live(s.orelse, after)
        else:
            after = _live_loop(s, after)
    return after


def _live_loop(loop: Loop, after: frozenset[str]) -> frozenset[str]:
    stop = frozenset({loop.stop} if loop.stop else ())
    bound, given = frozenset[str](), frozenset[str]()
    if isinstance(loop.node, ast.For):
        bound, given = _writes(loop.node.target), reads(loop.node.iter)
    else:
        given = reads(loop.node.test)
    loop.live, head, test = after, after, frozenset[str]() if bound else given
    while True:
        new = after | test | (_live(loop.body, head | stop) - bound)
        if new == head:
            break
        head = new
    loop.head = head
    return head | given
