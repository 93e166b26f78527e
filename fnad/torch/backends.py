"""`torch.backends`: switches of libraries that are not here. They can be set, and have no effect."""

from __future__ import annotations

from types import SimpleNamespace


def _absent() -> bool:
    return False


cudnn = SimpleNamespace(benchmark=False, deterministic=False, enabled=False, allow_tf32=False, is_available=_absent)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=_absent)
mps = SimpleNamespace(is_available=_absent, is_built=_absent)
mkldnn = SimpleNamespace(enabled=False, is_available=_absent)
mkl = SimpleNamespace(is_available=_absent)
openmp = SimpleNamespace(is_available=_absent)
