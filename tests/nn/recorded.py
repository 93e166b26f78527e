"""How arrays are written in `families_torch.json`, read by the recorder and by the tests: most by a formula, so that the file stays small."""

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


def unpacked(value, dtype: type):
    """An argument: arrays in a dtype unless they are of integers or truth values, lists as tuples, dictionaries of arrays in place."""
    if isinstance(value, dict):
        found = array(value)
        return found if found.dtype.kind in "ib" else found.astype(dtype)
    return [unpacked(v, dtype) for v in value] if isinstance(value, list) and any(isinstance(v, dict) for v in value) else value
