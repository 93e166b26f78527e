"""Generated source as compiled functions: found by tracebacks and debuggers, and, if asked for, by numba's disk cache."""

from __future__ import annotations

import contextlib
import hashlib
import linecache
import math
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import numpy as np

from fnad import _numba
from fnad._version import VERSION
from fnad.kernels.codegen import cache

_ALWAYS: dict[str, Any] = {"np": np, "math": math}


def load(
    text: str,
    name: str,
    namespace: Mapping[str, Any],
    options: Mapping[str, Any],
    compiler: Callable[[Any, dict[str, Any]], Any] = _numba.compiled,
) -> Any:
    """The numba function `name` of a source text. `options` are numba's; with `cache` the machine code stays on disk."""
    function = plain(text, name, namespace, keep=bool(options.get("cache")))
    chosen = {k: v for k, v in options.items() if k != "cache"}
    if options.get("cache") and os.path.exists(function.__code__.co_filename):
        with contextlib.suppress(RuntimeError, OSError):  # no directory can be written
            return compiler(function, chosen | {"cache": True})
    return compiler(function, chosen)


def plain(text: str, name: str, namespace: Mapping[str, Any], keep: bool = False) -> Any:
    """The Python function of a source text; its text lies in a file if `keep`, otherwise in `linecache` only."""
    names = {**_ALWAYS, **namespace}
    if "prange" in text:
        names["prange"] = _numba.parallel_range()
    path = _file(text, name, namespace) if keep else None
    if path is None:
        path = f"<{name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    names["__name__"] = __name__  # numba imports it when it reads its cache
    exec(compile(text, path, "exec"), names)
    return names[name]


def _file(text: str, name: str, namespace: Mapping[str, Any]) -> str | None:
    """The file with a source text, written if need be; None if none can be."""
    folder = cache.directory()
    what = fingerprint(namespace)
    if folder is None or what is None:
        return None
    digest = hashlib.sha256(f"{VERSION} {what} {text}".encode()).hexdigest()[:24]
    path = folder / "loops" / f"{name}_{digest}.py"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            _write(path, text)
    except OSError:
        return None
    return str(path)


def _write(path: pathlib.Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as f:
            f.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def fingerprint(names: Mapping[str, Any]) -> str | None:
    """What the objects that a source text refers to are, across processes; None where that cannot be said."""
    digest = hashlib.sha256()
    for name in sorted(names):
        found = _identity(names[name], set())
        if found is None:
            return None
        digest.update(f"{name}={found};".encode())
    return digest.hexdigest()


def _identity(thing: Any, seen: set[int]) -> str | None:
    """A text that changes with what a function does, or with a number; None for other objects."""
    if isinstance(thing, bool | int | float | complex | str | bytes | np.generic | np.dtype) or thing is None:
        return f"{type(thing).__name__}:{thing!r}"
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype}{thing.shape}{hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()}"
    if isinstance(thing, tuple):
        parts = [_identity(x, seen) for x in thing]
        return None if None in parts else f"({','.join(map(str, parts))})"
    if isinstance(thing, type) or type(thing).__name__ in ("module", "ufunc", "builtin_function_or_method"):
        return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', getattr(thing, '__name__', ''))}"
    function = getattr(thing, "py_func", thing)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    if id(code) in seen:
        return "again"
    seen.add(id(code))
    parts = [f"{code.co_code.hex()}{code.co_names}", _constants(code)]
    for cell in function.__closure__ or ():
        parts.append(_identity(cell.cell_contents, seen))
    for name in code.co_names:
        if name in function.__globals__:
            parts.append(_identity(function.__globals__[name], seen))
    return None if None in parts else f"{function.__qualname__}[{','.join(map(str, parts))}]"


def _constants(code: CodeType) -> str:
    return ",".join(_constants(c) + c.co_code.hex() if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
