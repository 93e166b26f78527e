"""Functions that can never be traced, each with what to write instead. Those that change an array stand in `indexing`."""

from __future__ import annotations

import numpy as np

from fnad.core.dispatch import refuse

refuse(
    "it calls Python for each entry: write the function with array operations, or map it over an axis with fnad.vmap",
    np.vectorize,
    np.frompyfunc,
)
refuse(
    "it needs plain values: return the array from the transformed function and write it after the call",
    np.save,
    np.savez,
    np.savez_compressed,
    np.savetxt,
    np.array2string,
)
refuse("tracers own no memory: ask about the plain arrays outside of the transform", np.shares_memory, np.may_share_memory)
