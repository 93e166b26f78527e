"""Pytrees in files: `.npz`, which NumPy reads, and `.safetensors`, which other libraries read. Loading runs no code of the file.

An `.npz` holds the arrays, and the structure as text: dicts, lists, tuples, named tuples, numbers, strings and None.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fnad.errors import ArgumentError, DTypeError, TreeError

_STRUCTURE = "__fnad_structure__"
_VERSION = 1


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a pytree to a file, all at once: a file of that name is replaced when the new one is complete.

    Args:
        path: `name.npz`, or `name.safetensors` (needs the extra `io`) for a dict of arrays by name.
        tree: Arrays, numbers, strings and None in dicts (with strings or integers as keys), lists, tuples and named tuples.

    Raises:
        DTypeError: a leaf is something else; the message names it.
        ArgumentError: the name ends otherwise, or safetensors is not installed.

    Example:
        >>> import os, tempfile, numpy as np, fnad
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> fnad.save(path, {"w": np.ones(2), "step": 3})
        >>> fnad.load(path)
        {'w': array([1., 1.]), 'step': 3}
    """
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        arrays = _flat_arrays(tree)
        writer = _safetensors("safetensors.numpy").save
        _write(path, lambda f: f.write(writer(arrays)))
    elif path.endswith(".npz"):
        save_npz(path, tree)
    else:
        raise ArgumentError("the name of the file ends in .npz or .safetensors", got={"path": path})


def save_npz(path: str, tree: Any) -> None:
    """`save` as `.npz`, under any name."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    text = json.dumps({"version": _VERSION, "tree": _describe(tree, "tree", found)})
    members: dict[str, Any] = {_STRUCTURE: np.array(text), **found}
    _write(path, lambda f: np.savez(f, **members))


_KINDS = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2",
    "F32": "<f4", "F64": "<f8", "C64": "<c8",
}  # fmt: skip


def load(path: str | os.PathLike[str], like: Any = None) -> Any:
    """Read a pytree that `save` wrote; or a `.safetensors` file of any library, as a dict of arrays (bfloat16 as float32).

    Args:
        path: The file.
        like: A pytree whose named tuples take the place of those in the file; those of `fnad.optim` are known.

    Returns:
        The pytree; arrays share memory with nothing.

    Raises:
        FileNotFoundError: there is no such file.
        ArgumentError: the file is damaged, or was not written by `save`.
        TreeError: it has a named tuple that is not known, or does not fit `like`.

    Example:
        >>> import os, tempfile, numpy as np, fnad
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> fnad.save(path, fnad.optim.sgd(0.1).init({"w": np.zeros(2)}))
        >>> fnad.load(path)
        SGDState(step={'w': array(0)}, momentum_buffer={'w': array([0., 0.])})
    """
    path = os.fspath(path)
    with open(path, "rb") as f:
        head = f.read(4)
    if path.endswith(".safetensors"):
        return _load_safetensors(path)
    if not head.startswith(b"PK"):
        raise ArgumentError("the file is damaged, or was not written by fnad.save", got={"path": path, "begins with": head})
    try:
        with open(path, "rb") as f, np.load(f, allow_pickle=False) as archive:
            if _STRUCTURE not in archive.files:
                raise ArgumentError("the file was not written by fnad.save", got={"path": path}, fix="np.load reads it")
            described = json.loads(str(archive[_STRUCTURE]))
            arrays = {name: archive[name] for name in archive.files if name != _STRUCTURE}
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError) as e:
        if isinstance(e, ArgumentError):
            raise
        raise ArgumentError("the file is damaged, or was not written by fnad.save", got={"path": path, "reason": e}) from e
    if described.get("version") != _VERSION:
        raise ArgumentError("the file was written by another version of fnad", got={"version": described.get("version")})
    return _rebuild(described["tree"], arrays, like)


def _load_safetensors(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by name; bfloat16, which NumPy lacks, becomes float32, which has all its numbers."""
    deserialize = _safetensors("safetensors").deserialize
    with open(path, "rb") as f:
        data = f.read()
    try:
        entries = deserialize(data)
    except Exception as e:
        raise ArgumentError("the file is damaged, or no safetensors file", got={"path": path, "reason": e}) from e
    found = {}
    for name, entry in entries:
        kind = entry["dtype"]
        if kind == "BF16":
            flat = (np.frombuffer(entry["data"], "<u2").astype("<u4") << 16).view("<f4")
        elif kind in _KINDS:
            flat = np.frombuffer(entry["data"], _KINDS[kind]).copy()
        else:
            raise ArgumentError("the file has an array of a dtype that NumPy lacks", got={"path": path, "array": name, "dtype": kind})
        found[name] = flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(entry["shape"])
    return found


def _write(path: str, fill: Callable[[Any], Any]) -> None:
    folder = os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as f:
            fill(f)
            f.flush()
            os.fsync(f.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _describe(x: Any, path: str, found: dict[str, np.ndarray[Any, Any]]) -> Any:
    """The structure as JSON; arrays are numbered."""
    if x is None or isinstance(x, bool | int | float | str):
        return {"value": x} if not isinstance(x, float) or np.isfinite(x) else {"float": repr(x)}
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind not in "biufcSU":
            raise DTypeError("arrays of numbers can be saved", got={path: x.dtype})
        name = f"array_{len(found)}"
        found[name] = np.asarray(x)
        return {"array": name, **({"scalar": True} if isinstance(x, np.generic) else {})}
    if isinstance(x, Mapping):
        for k in x:
            if not isinstance(k, str | int) or isinstance(k, bool):
                raise DTypeError("keys of dicts are strings or integers", got={path: repr(k)})
        return {"dict": [[k, _describe(v, f"{path}[{k!r}]", found)] for k, v in x.items()]}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return {"named": type(x).__name__, "items": [[f, _describe(v, f"{path}.{f}", found)] for f, v in zip(x._fields, x, strict=True)]}
    if isinstance(x, tuple | list):
        return {type(x).__name__ if type(x) is list else "tuple": [_describe(v, f"{path}[{i}]", found) for i, v in enumerate(x)]}
    raise DTypeError("arrays, numbers, strings and None can be saved", got={path: f"{type(x).__module__}.{type(x).__qualname__}"})


def _rebuild(d: dict[str, Any], arrays: dict[str, Any], like: Any) -> Any:
    if "value" in d:
        return d["value"]
    if "float" in d:
        return float(d["float"])
    if "complex" in d:
        return complex(*d["complex"])
    if "array" in d:
        return arrays[d["array"]][()] if d.get("scalar") else arrays[d["array"]]
    if "dict" in d:
        return {k: _rebuild(v, arrays, like.get(k) if isinstance(like, Mapping) else None) for k, v in d["dict"]}
    if "named" in d:
        return _named(d, arrays, like)
    kind, items = next(iter(d.items()))
    likes = list(like) if isinstance(like, tuple | list) and len(like) == len(items) else [None] * len(items)
    out = [_rebuild(v, arrays, part) for v, part in zip(items, likes, strict=True)]
    return out if kind == "list" else tuple(out)


def _named(d: dict[str, Any], arrays: dict[str, Any], like: Any) -> Any:
    fields = [f for f, _ in d["items"]]
    kind = type(like) if hasattr(like, "_fields") else getattr(importlib.import_module("fnad.optim"), d["named"], None)
    if kind is None or list(getattr(kind, "_fields", ())) != fields:
        raise TreeError(
            "a named tuple of the file is not known",
            got={"name": d["named"], "fields": ", ".join(fields), "like": None if like is None else type(like).__name__},
            fix="pass like=, a pytree of the structure that was saved",
        )
    values = [_rebuild(v, arrays, getattr(like, f, None)) for f, v in d["items"]]
    return kind(*values)


def _flat_arrays(tree: Any) -> dict[str, np.ndarray[Any, Any]]:
    if not isinstance(tree, Mapping) or not all(isinstance(k, str) and isinstance(x, np.ndarray) for k, x in tree.items()):
        raise DTypeError("a .safetensors file holds a dict of arrays by name", fix="save other pytrees as .npz")
    return {k: np.ascontiguousarray(x) for k, x in tree.items()}


def _safetensors(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ArgumentError(".safetensors files need safetensors", fix="pip install 'fnad[io]', or save as .npz") from e
