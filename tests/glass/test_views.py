"""Views give what torch computes by hand."""

from typing import Any

import numpy as np
import pytest
import torch

from py_runtime.glass.views.attention import _induction, _scores
from tests.glass.conftest import Exported
from tests.glass.test_runs import CLOSE, difference
from tests.glass.torch_model import activations, layers_of
from tests.runners import CpuRunner, NativeRunner

pytestmark = pytest.mark.torch

CASES = "tests.glass.view_cases"
TOKENS = np.random.default_rng(4).integers(3, 300, 9).tolist()
OTHERS = [*TOKENS[:3], 17, *TOKENS[4:]]
ANSWERS = (5, 6)


@pytest.fixture(scope="module")
def model(exported: Exported) -> Any:
    return exported("smollm2")[0]


@pytest.fixture(scope="module")
def wanted(model: Any) -> dict[str, np.ndarray]:
    return activations(model, TOKENS)


@pytest.fixture(scope="module")
def found(exported: Exported, cpu: CpuRunner) -> Any:
    _, where = exported("smollm2")
    return cpu.run(CASES, "views", where=where, tokens=TOKENS, others=OTHERS)


def unembedded(model: Any, stream: np.ndarray) -> np.ndarray:
    """Return the probabilities of rows of the stream."""
    with torch.no_grad():
        logits = model.lm_head(model.model.norm(torch.tensor(stream)))
    return logits.softmax(-1).numpy()


def test_the_lens(model: Any, wanted: dict[str, np.ndarray], found: Any) -> None:
    lens = found["lens"]
    layers = ["blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"]
    streams = np.stack([wanted[name][0] for name in layers])
    chances = unembedded(model, streams)  # [3, S, V]
    places = [4, 8]
    assert lens["positions"] == places
    np.testing.assert_array_equal(lens["top"], chances[:, places].argmax(-1))
    np.testing.assert_allclose(lens["prob"], chances[:, places].max(-1), rtol=1e-3)
    token = int(chances[-1, -1].argmax())
    assert lens["token"] == token
    np.testing.assert_allclose(lens["token_prob"], chances[:, places, token], rtol=1e-3)
    ranks = (chances[:, places] > chances[:, places, token][..., None]).sum(-1)
    np.testing.assert_array_equal(lens["token_rank"], ranks)
    race = np.argsort(-chances[-1, -2], kind="stable")[:3]
    np.testing.assert_array_equal(lens["race"], race)
    np.testing.assert_allclose(lens["race_prob"], chances[:, -2, race], rtol=1e-3)
    entropy = -(chances * np.log(chances)).sum(-1)
    np.testing.assert_allclose(lens["entropy"], entropy[:, places], rtol=1e-3)


def test_attention(wanted: dict[str, np.ndarray], found: Any) -> None:
    attention = found["attention"]
    pattern = wanted["blocks.1.attn.hook_pattern"][0]
    assert difference(attention["patterns"][0], pattern) < CLOSE
    some = found["attention of some"]
    assert difference(some["patterns"][0], pattern[:, -3:, -3:]) < CLOSE
    assert some["texts"] == attention["texts"][-3:]
    assert [(each["layer"], each["head"]) for each in attention["heads"]] == [
        (1, head) for head in range(len(pattern))
    ]
    for each, own in zip(attention["heads"], pattern, strict=True):
        before = np.mean([own[at, at - 1] for at in range(2, len(own))])
        assert each["scores"]["previous token"] == pytest.approx(before, rel=1e-3)


def test_heads_are_labelled_by_what_they_do() -> None:
    tokens = [1, 2, 3, 1, 2, 3]
    count = len(tokens)
    heads = np.zeros((4, count, count), np.float32)
    heads[0, range(1, count), range(count - 1)] = 1  # the token before
    heads[1, :, 0] = 1
    heads[2, range(3, count), range(count - 3)] = 1  # the same token
    heads[3, range(3, count), range(1, count - 2)] = 1  # what came after it
    before, first, duplicate = _scores(heads, tokens)
    assert [int(scores.argmax()) for scores in (before, first, duplicate)] == [0, 1, 2]
    assert before[0] == first[1] == duplicate[2] == 1
    assert _induction(heads)[3] == 1
    assert _induction(heads)[:3].max() < 0.5


@pytest.mark.model
@pytest.mark.thorough
def test_the_default_model_has_heads_of_each_kind(cpu: CpuRunner) -> None:
    text = "The cat sat on the mat because the cat was tired of the dog."
    heads = cpu.run(CASES, "labelled", where="models/SmolLM2-135M-Instruct", text=text)
    labels = [each["label"] for each in heads]
    assert {"previous token", "first token", "induction"} <= set(labels)


def test_norms(wanted: dict[str, np.ndarray], found: Any) -> None:
    norms = found["norms"]
    names = ["blocks.0.hook_resid_pre", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post"]
    streams = np.stack([wanted[name][0] for name in names])
    np.testing.assert_allclose(norms["stream"], np.linalg.norm(streams, axis=-1), rtol=1e-3)
    assert norms["mixers"].shape == norms["mlps"].shape == (2, len(TOKENS))
    first = norms["outliers"][0]
    times = np.abs(streams) / np.sqrt(np.square(streams).mean(-1, keepdims=True))
    assert first["times"] == pytest.approx(times.max(), rel=1e-3)
    value = streams[first["layer"], first["position"], first["neuron"]]
    assert first["value"] == pytest.approx(value, rel=1e-3)


def test_neurons(model: Any, wanted: dict[str, np.ndarray], found: Any) -> None:
    neurons = found["neurons"]
    active = np.stack([wanted[f"blocks.{n}.mlp.hook_post"][0, 5] for n in range(2)])
    order = np.argsort(-np.abs(active), axis=None)[:4]
    best = [(int(at) // active.shape[1], int(at) % active.shape[1]) for at in order]
    assert [(each["layer"], each["neuron"]) for each in neurons["neurons"]] == best
    for each in neurons["neurons"]:
        assert each["activation"] == pytest.approx(active[each["layer"], each["neuron"]], rel=1e-3)
        column = layers_of(model)[each["layer"]].mlp.down_proj.weight[:, each["neuron"]]
        with torch.no_grad():
            logits = model.lm_head(column * model.model.norm.weight).numpy()
        sign = 1 if each["activation"] > 0 else -1
        tokens = np.argsort(-sign * logits, kind="stable")[:3].tolist()
        assert [promoted["token"] for promoted in each["promotes"]] == tokens
        got = [promoted["logit"] for promoted in each["promotes"]]
        np.testing.assert_allclose(got, sign * logits[tokens], rtol=1e-3)


def test_patching(model: Any, wanted: dict[str, np.ndarray], found: Any) -> None:
    patch = found["patch"]

    def gap(logits: Any) -> float:
        return float(logits[0, -1, ANSWERS[0]] - logits[0, -1, ANSWERS[1]])

    def run() -> float:
        with torch.no_grad():
            return gap(model(torch.tensor([OTHERS]), use_cache=False).logits)

    clean, corrupted = gap(wanted["logits"]), run()
    assert patch["difference"]["clean"] == pytest.approx(clean, abs=1e-3)
    assert patch["difference"]["corrupted"] == pytest.approx(corrupted, abs=1e-3)
    layer = layers_of(model)[1]
    for place in range(len(TOKENS)):

        def put(_module: Any, args: Any, place: int = place) -> Any:
            x = args[0].clone()
            x[0, place] = torch.tensor(wanted["blocks.1.hook_resid_pre"][0, place])
            return (x, *args[1:])

        handle = layer.register_forward_pre_hook(put)
        effect = (run() - corrupted) / (clean - corrupted)
        handle.remove()
        assert patch["effects"]["resid_pre"][1, place] == pytest.approx(effect, abs=2e-3)
    assert patch["effects"]["resid_pre"][0, 3] == pytest.approx(1, abs=2e-3)
    np.testing.assert_allclose(patch["effects"]["mlp_out"][:, :3], 0, atol=2e-3)
    total = 3 * 2 * len(TOKENS)
    assert found["steps"] == [[done, total] for done in range(1, total + 1)]


@pytest.mark.parametrize("family", ["lfm2", "qwen3.5", "gemma 2", "gpt-oss"])
@pytest.mark.thorough
def test_views_of_other_mixers(exported: Exported, cpu: CpuRunner, family: str) -> None:
    _, where = exported(family)
    attending = 3 if family == "qwen3.5" else 1  # the first layer that has attention
    has_neurons = family != "gpt-oss"  # its MLPs are experts
    found = cpu.run(
        CASES,
        "views",
        where=where,
        tokens=TOKENS,
        others=OTHERS,
        attending=attending,
        has_neurons=has_neurons,
    )
    assert found["patch"]["effects"]["resid_pre"][0, 3] == pytest.approx(1, abs=2e-3)


def test_on_a_gpu(exported: Exported, native: NativeRunner, found: Any) -> None:
    _, where = exported("smollm2")
    other = native.run(CASES, "views", where=where, tokens=TOKENS, others=OTHERS)
    np.testing.assert_array_equal(other["lens"]["top"], found["lens"]["top"])
    np.testing.assert_allclose(
        other["patch"]["effects"]["attn_out"], found["patch"]["effects"]["attn_out"], atol=2e-3
    )
