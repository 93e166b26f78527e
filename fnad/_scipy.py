"""SciPy, imported when it is first needed: `import fnad` alone must not wait for it."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def special() -> ModuleType:
    """The module `scipy.special`."""
    import scipy.special

    return scipy.special
