"""Functions of the facade against PyTorch, where it is installed."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

import fnad.torch as ours  # noqa: E402

from ..torch import function_cases  # noqa: E402
from .facade import same, same_gradients  # noqa: E402


@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated:UserWarning")
@pytest.mark.parametrize("name", function_cases.CASES)
def test_functions(name):
    (got, mine), (want, theirs) = (function_cases.run(T, name) for T in (ours, torch))
    same(got, want, 1e-9, "value")
    same_gradients(mine, theirs, 1e-9, "gradient")
