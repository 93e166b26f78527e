"""State dicts as files, between PyTorch and the facade, where both and safetensors are installed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.peers

import fnad.torch as ours  # noqa: E402


def model(T):
    """Every kind of state: parameters, running statistics, numbers of batches, tied weights left out."""
    nn = T.nn
    return nn.Sequential(
        nn.Embedding(7, 4, padding_idx=0),
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
        nn.Flatten(0, 1),
        nn.BatchNorm1d(4),
        nn.PReLU(4),
        nn.ModuleDict({"head": nn.Linear(4, 3)})["head"],
    )


NUMBERS = np.array([[1, 2, 3], [4, 5, 6], [0, 1, 1]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_state_dict_of_pytorch_loads_into_the_same_module(tmp_path, dtype):
    made, mine = model(torch), model(ours)
    made(torch.from_numpy(NUMBERS))  # running statistics move
    path = tmp_path / "model.safetensors"
    theirs.save_file(made.to(getattr(torch, dtype)).state_dict(), path)
    state = ours.load(path)
    assert set(state) == set(made.state_dict())
    mine.to(getattr(ours, dtype))
    assert str(mine.load_state_dict(state)) == "<All keys matched successfully>"
    for name, value in made.state_dict().items():
        assert str(mine.state_dict()[name].dtype) == str(value.dtype)
        np.testing.assert_array_equal(mine.state_dict()[name].numpy(), value.numpy())
    if dtype != "float16":
        out = mine.eval()(ours.from_numpy(NUMBERS)).detach().numpy()
        with torch.no_grad():
            np.testing.assert_allclose(out, made.eval()(torch.from_numpy(NUMBERS)).numpy(), 1e-5, 1e-5)


def test_bfloat16_becomes_float32(tmp_path):
    path, w = tmp_path / "model.safetensors", torch.randn(3, 2).bfloat16()
    theirs.save_file({"w": w, "mask": torch.tensor([True, False]), "empty": torch.zeros(0, 2), "number": torch.tensor(3)}, path)
    found = ours.load(path)
    assert found["w"].dtype == ours.float32
    np.testing.assert_array_equal(found["w"].numpy(), w.float().numpy())
    assert (found["mask"].tolist(), tuple(found["empty"].shape), found["number"].item()) == ([True, False], (0, 2), 3)
    theirs.save_file({"w": torch.zeros(2).to(torch.float8_e5m2)}, path)
    with pytest.raises(ValueError, match="F8_E5M2"):
        ours.load(path)


def test_a_state_dict_of_the_facade_loads_into_pytorchs_module(tmp_path):
    mine, made = model(ours), model(torch)
    path = tmp_path / "model.safetensors"
    ours.save(mine.state_dict(), path)
    made.load_state_dict(theirs.load_file(path))
    for name, value in mine.state_dict().items():
        np.testing.assert_array_equal(made.state_dict()[name].numpy(), value.numpy())


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("0.weight"),
        lambda state: state.update(other=state["0.weight"]),
        lambda state: state.update({"5.weight": state["0.weight"]}),
        lambda state: state.update({"5.weight": state["5.bias"], "5.bias": state["5.weight"], "x": state["5.bias"]}),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_the_same_text_where_a_state_dict_does_not_fit(change, strict):
    told = []
    for T in (torch, ours):
        module = model(T)
        state = dict(module.state_dict())
        change(state)
        try:
            told.append(repr(module.load_state_dict(state, strict=strict)))
        except RuntimeError as e:
            told.append(str(e))
    assert told[0] == told[1]


def test_a_pickle_of_pytorch_is_refused(tmp_path):
    torch.save(model(torch).state_dict(), tmp_path / "model.pt")
    with pytest.raises(ValueError, match="pickle"):
        ours.load(tmp_path / "model.pt")
