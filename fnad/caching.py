"""The disk cache of compiled programs, as users see it."""

from fnad.kernels.codegen import cache
from fnad.kernels.codegen.load import statistics


def cache_info() -> cache.CacheInfo:
    """Where compiled programs are kept on disk, how many there are, and how many this process compiled or found there.

    Returns:
        A named tuple `(directory, programs, bytes, compiled, loaded)`.

    The directory is `FNAD_CACHE_DIR`, else `XDG_CACHE_HOME/fnad`, else `~/.cache/fnad`.

    Example:
        >>> import fnad
        >>> fnad.cache_info().compiled >= 0
        True
    """
    folder = cache.directory()
    found = cache.files()
    return cache.CacheInfo(
        None if folder is None else str(folder), len(found), sum(found.values()), statistics["compiled"], statistics["loaded"]
    )


def clear_cache() -> None:
    """Remove all compiled programs of this version of fnad from disk. What is in memory stays.

    Example:
        >>> import fnad
        >>> fnad.clear_cache()
        >>> fnad.cache_info().programs
        0
    """
    cache.clear()
