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
from collections.abc import Iterable
from typing import NamedTuple

from fnad import _llvm
from fnad._config import START
from fnad._version import VERSION

SOURCES = ("_*.py", "compiler/*.py", "kernels/**/*.py")
LIMIT = 1 << 30  # bytes on disk beyond which old programs go


def directory() -> pathlib.Path | None:
    """The folder for programs of this fnad, made if need be; None if there is none that we can write and trust.

    `FNAD_CACHE_DIR`, else `XDG_CACHE_HOME/fnad`, else `~/.cache/fnad` (`%LOCALAPPDATA%` on Windows). A relative path begins where
    the process was when fnad was imported.
    """
    chosen = os.environ.get("FNAD_CACHE_DIR")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
        chosen = os.path.join(base or os.path.join(os.path.expanduser("~"), ".cache"), "fnad")
    path = pathlib.Path(START, chosen) / f"programs-{version()}"
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
    """Changes with whatever changes the code that is made from one text: fnad's own sources, LLVM, the processor, Python."""
    return version_of(pathlib.Path(__file__).parents[2])


def version_of(package: pathlib.Path) -> str:
    """The version for the sources in a directory: the compiler, its printers and kernels, and the doors to other libraries."""
    digest = hashlib.sha256(f"{VERSION} {_llvm.version()} {sys.version_info[:2]}".encode())
    for pattern in SOURCES:
        for file in sorted(package.glob(pattern)):
            digest.update(f"{file.relative_to(package).as_posix()} ".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def read(path: pathlib.Path) -> bytes | None:
    """What `write_once` wrote; None if there is nothing, or something else."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, data = content[:32], content[32:]
    if hashlib.sha256(data).digest() == checksum:
        return data
    remove([path])  # so that it is written anew
    return None


def write_once(path: pathlib.Path, data: bytes) -> None:
    """Create a file with a checksum and its whole content, or not at all; an existing one is left alone."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(hashlib.sha256(data).digest() + data)
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


def files(every_version: bool = False) -> dict[pathlib.Path, int]:
    """The programs on disk and their sizes in bytes."""
    folder = directory()
    out: dict[pathlib.Path, int] = {}
    for path in () if folder is None else folder.parent.glob("programs-*/*.o") if every_version else folder.glob("*.o"):
        with contextlib.suppress(OSError):
            out[path] = path.stat().st_size
    return out


def evict(limit: int = LIMIT) -> None:
    """If the programs of all versions do not fit the limit, remove those used longest ago until the rest fits half of it."""
    sizes = files(every_version=True)
    total = sum(sizes.values())
    if total <= limit:
        return

    def last_use(path: pathlib.Path) -> float:
        with contextlib.suppress(OSError):
            return path.stat().st_atime
        return 0.0

    for path in sorted(sizes, key=last_use):
        if total <= limit // 2:
            break
        remove([path])
        total -= sizes[path]


def remove(paths: Iterable[pathlib.Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def clear() -> None:
    """Remove every program on disk; those in memory stay."""
    remove(files())
