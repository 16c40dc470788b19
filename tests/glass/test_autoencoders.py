"""Features of sparse autoencoders are those that torch computes from the same files."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.glass.autoencoder_cases import FEATURE
from tests.glass.conftest import Exported
from tests.glass.test_runs import CLOSE, difference
from tests.glass.torch_model import activations, layers_of
from tests.glass.written_autoencoders import (
    CONFIGS,
    HOOK,
    LAYOUTS,
    autoencoder_files,
    random_tensors,
)
from tests.runners import CpuRunner, NativeRunner

pytestmark = pytest.mark.torch

CASES = "tests.glass.autoencoder_cases"
TOKENS = np.random.default_rng(4).integers(3, 300, 9).tolist()
FEATURES = 96


@pytest.fixture(scope="module")
def model(exported: Exported) -> Any:
    return exported("smollm2")[0]


@pytest.fixture(scope="module")
def width(model: Any) -> int:
    return int(model.config.hidden_size)


@pytest.fixture(scope="module")
def stream(model: Any) -> torch.Tensor:
    """Return the activations that torch has at the hook: [S, D]."""
    return torch.tensor(activations(model, TOKENS)[HOOK][0])


def looked_at(
    runner: CpuRunner | NativeRunner, where: str, layout: str, width: int, hook: str = HOOK
) -> Any:
    files = {
        name: np.frombuffer(data, np.uint8)
        for name, data in autoencoder_files(layout, width, FEATURES).items()
    }
    return runner.run(CASES, "looked_at", where=where, tokens=TOKENS, files=files, hook=hook)


def by_torch(
    layout: str, tensors: dict[str, np.ndarray], x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return features and reconstruction, as SAELens and sparsify define them."""
    own = {name.replace("w_", "W_"): torch.tensor(value) for name, value in tensors.items()}
    config = CONFIGS[layout] or {}
    norm = config.get("normalize_activations")
    shift, scale = torch.zeros(len(x), 1), torch.ones(len(x), 1)
    given = x
    if norm == "layer_norm":
        shift, scale = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        given = (x - shift) / (scale + 1e-5)
    elif norm == "constant_norm_rescale":
        scale = x.norm(dim=-1, keepdim=True) / x.shape[1] ** 0.5
        given = x / scale
    if not layout.startswith("gemma") and config.get("apply_b_dec_to_input", True):
        given = given - own["b_dec"]
    if layout == "eleuther":
        pre = torch.nn.functional.linear(given, own["encoder.weight"], own["encoder.bias"]).relu()
    elif layout == "saelens, gated":
        pre = given @ own["W_enc"]
        magnitude = (given @ (own["W_enc"] * own["r_mag"].exp()) + own["b_mag"]).relu()
        pre = magnitude * (pre + own["b_gate"] > 0)
    else:
        pre = (given @ own["W_enc"] + own["b_enc"]).relu()
    kept = {"eleuther": 7, "saelens, topk": 5, "saelens, topk as activation": 5}.get(layout)
    if kept is not None:
        best = pre.topk(kept, dim=-1)
        pre = torch.zeros_like(pre).scatter(-1, best.indices, best.values)
    if "threshold" in own:
        pre = pre * (pre > own["threshold"])
    return pre, (pre @ own["W_dec"] + own["b_dec"]) * scale + shift


@pytest.mark.parametrize("layout", LAYOUTS)
def test_features_are_those_of_torch(
    exported: Exported, cpu: CpuRunner, stream: torch.Tensor, width: int, layout: str
) -> None:
    found = looked_at(cpu, exported("smollm2")[1], layout, width)
    tensors = random_tensors(layout, width, FEATURES)
    wanted, rebuilt = by_torch(layout, tensors, stream)
    assert difference(found["whole"], wanted.numpy()) < CLOSE
    assert difference(found["rebuilt"], rebuilt.numpy()) < CLOSE
    assert 0 < (wanted > 0).sum() < wanted.numel()
    view, places = found["view"], [0, 3, len(TOKENS) - 1]
    assert view["positions"] == places
    assert view["active"].tolist() == (wanted[places] > 0).sum(-1).tolist()
    np.testing.assert_array_equal(view["top"], wanted[places].topk(4).indices)
    listed = view["features"].tolist()
    assert set(listed) == {*view["top"].reshape(-1).tolist(), FEATURE}
    assert difference(view["activations"], wanted[places][:, listed].T.numpy()) < CLOSE
    x, y = stream[places[1:]].double(), rebuilt[places[1:]].double()
    explained = 1 - (x - y).square().sum() / (x - x.mean(0)).square().sum()
    assert view["explained"] == pytest.approx(float(explained), rel=1e-3)
    assert view["l0"] == pytest.approx(float((wanted[places[1:]] > 0).sum(-1).float().mean()))
    assert found["steps"][-1][0] == found["steps"][-1][1]
    assert found["left"] == 0


def test_the_hook_is_that_of_the_configuration(
    exported: Exported, cpu: CpuRunner, width: int
) -> None:
    where = exported("smollm2")[1]
    hooks = {
        layout: looked_at(cpu, where, layout, width)["hook"]
        for layout in ("saelens", "saelens, newer", "gemma scope", "gemma scope 2", "eleuther")
    }
    assert hooks == {
        "saelens": HOOK,
        "saelens, newer": HOOK,
        "gemma scope": None,
        "gemma scope 2": "blocks.0.hook_resid_post",
        "eleuther": None,
    }


def test_steering_by_a_feature_is_the_same_edit_in_torch(
    exported: Exported, cpu: CpuRunner, model: Any, width: int
) -> None:
    found = looked_at(cpu, exported("smollm2")[1], "saelens", width)
    row = torch.tensor(random_tensors("saelens", width, FEATURES)["W_dec"][FEATURE])

    def add(_module: Any, args: Any) -> Any:
        return (args[0] + 2 * row, *args[1:])

    handle = layers_of(model)[1].register_forward_pre_hook(add)
    with torch.no_grad():
        wanted = model(torch.tensor([TOKENS]), use_cache=False).logits[0, -1].numpy()
    handle.remove()
    assert difference(found["steered"].reshape(-1), wanted) < CLOSE
    np.testing.assert_array_equal(found["steered"], found["same edit"])
    np.testing.assert_array_equal(found["strength 0"], found["plain"])
    assert difference(found["steered"], found["plain"]) > 1e-2


def test_tokens_that_a_feature_promotes(
    exported: Exported, cpu: CpuRunner, model: Any, width: int
) -> None:
    found = looked_at(cpu, exported("smollm2")[1], "saelens", width)
    assert [each["feature"] for each in found["promoted"]] == [FEATURE, 3]
    for each in found["promoted"]:
        row = torch.tensor(random_tensors("saelens", width, FEATURES)["W_dec"][each["feature"]])
        with torch.no_grad():
            logits = model.lm_head(row * model.model.norm.weight).numpy()
        for name, order in (("promotes", np.argsort(-logits)), ("suppresses", np.argsort(logits))):
            assert [token["token"] for token in each[name]] == order[:3].tolist(), name
            values = [token["logit"] for token in each[name]]
            np.testing.assert_allclose(values, logits[order[:3]], rtol=1e-3)


def test_heads_are_read_together(exported: Exported, cpu: CpuRunner, model: Any) -> None:
    heads = model.config.num_attention_heads * model.config.head_dim
    hook = "blocks.0.attn.hook_z"
    found = looked_at(cpu, exported("smollm2")[1], "saelens", heads, hook)
    wanted = activations(model, TOKENS)[hook][0].reshape(len(TOKENS), -1)
    whole, _ = by_torch("saelens", random_tensors("saelens", heads, FEATURES), torch.tensor(wanted))
    assert difference(found["whole"], whole.numpy()) < CLOSE
    assert found["promoted"][0]["promotes"] == []
    np.testing.assert_array_equal(found["steered"], found["same edit"])


def test_on_a_gpu(exported: Exported, native: NativeRunner, width: int, cpu: CpuRunner) -> None:
    where = exported("smollm2")[1]
    ours, others = (
        looked_at(native, where, "eleuther", width),
        looked_at(cpu, where, "eleuther", width),
    )
    np.testing.assert_array_equal(ours["view"]["top"], others["view"]["top"])
    assert difference(ours["steered"], others["steered"]) < CLOSE
