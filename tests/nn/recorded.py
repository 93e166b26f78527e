"""How arrays are written in `families_torch.json`: most by a formula, so that it stays small. For the recorder and the tests."""

import numpy as np


def array(spec: dict) -> np.ndarray:
    """{"real": shape, "k": number} for waves of different phase, {"positive": ...} for their absolute values, {"values": ...}."""
    if "values" in spec:
        return np.array(spec["values"])
    shape = spec.get("real", spec.get("positive"))
    waves = 1.5 * np.sin(1.7 * spec["k"] + 2.3 * np.arange(np.prod(shape, dtype=int))) + 0.3 * np.cos(
        0.9 * np.arange(np.prod(shape, dtype=int))
    )
    waves = np.round(waves, 3).reshape(shape)
    return 0.1 + np.abs(waves) if "positive" in spec else waves


def real(*shape: int, k: int = 0) -> dict:
    return {"real": list(shape), "k": k}


def positive(*shape: int, k: int = 0) -> dict:
    return {"positive": list(shape), "k": k}


def values(x) -> dict:
    return {"values": x}


def holds_arrays(value) -> bool:
    """Whether a list contains arrays, at any depth."""
    return isinstance(value, list) and any(isinstance(v, dict) or holds_arrays(v) for v in value)


def flat(out) -> list:
    """The arrays of a result, which may be nested tuples with None."""
    return [] if out is None else [o for part in out for o in flat(part)] if isinstance(out, tuple | list) else [out]
