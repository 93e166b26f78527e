"""Where compiled programs live on disk."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import stat
import sys
import tempfile
from typing import NamedTuple

from fnad import _numba
from fnad._version import VERSION

LIMIT = 1 << 30  # bytes on disk beyond which old programs go


def directory() -> pathlib.Path | None:
    """The folder for programs of this fnad, made if need be; None if there is none that we can write and trust.

    `FNAD_CACHE_DIR`, else `XDG_CACHE_HOME/fnad`, else `~/.cache/fnad` (`%LOCALAPPDATA%` on Windows).
    """
    chosen = os.environ.get("FNAD_CACHE_DIR")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
        chosen = os.path.join(base or os.path.join(os.path.expanduser("~"), ".cache"), "fnad")
    path = pathlib.Path(chosen) / f"programs-{version()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None  # somebody else could put code there
    return path if os.access(path, os.W_OK | os.R_OK) else None


@functools.cache
def version() -> str:
    """Changes with whatever changes the code that is made from one text: the printers, numba, llvmlite, Python."""
    digest = hashlib.sha256(f"{VERSION} {_numba.versions()} {sys.version_info[:2]}".encode())
    for file in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def write_once(path: pathlib.Path, text: str) -> None:
    """Create a file with its whole content or not at all; an existing one is left alone."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class CacheInfo(NamedTuple):
    """What `fnad.cache_info` returns."""

    directory: str | None
    """Where compiled programs are kept; None if no directory can be written."""
    programs: int
    """Programs on disk, of this version of fnad."""
    bytes: int
    """Their size, machine code included."""
    compiled: int
    """Programs that this process has compiled."""
    loaded: int
    """Programs that this process has found on disk."""


def files() -> dict[str, list[pathlib.Path]]:
    """The files of each program on disk: its module, and numba's index and machine code wherever numba keeps them."""
    folder = directory()
    out: dict[str, list[pathlib.Path]] = {}
    if folder is None:
        return out
    for path in folder.glob("*.py"):
        out[path.stem] = [path]
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    for place in [folder / "__pycache__", *(pathlib.Path(elsewhere).rglob(f"{folder.name}*") if elsewhere else ())]:
        if place.is_dir():
            for path in place.iterdir():
                out.setdefault(path.name.split(".")[0], []).append(path)
    return out


def size(paths: list[pathlib.Path]) -> int:
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def evict(limit: int = LIMIT) -> None:
    """Remove the programs that were used longest ago until the rest fits the limit."""
    found = files()
    sizes = {name: size(paths) for name, paths in found.items()}
    total = sum(sizes.values())
    if total <= limit:
        return

    def last_use(name: str) -> float:
        times = [0.0]
        for path in found[name]:
            with contextlib.suppress(OSError):
                times.append(path.stat().st_atime)
        return max(times)

    for name in sorted(found, key=last_use):
        if total <= limit // 2:
            break
        remove(found[name])
        total -= sizes[name]


def remove(paths: list[pathlib.Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def clear() -> None:
    """Remove every program on disk; those in memory stay."""
    for paths in files().values():
        remove(paths)
