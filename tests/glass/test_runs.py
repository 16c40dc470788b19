"""Activations of every hook are torch's, and functions change what follows as in torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.reference import hidden_states, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from tests.glass.conftest import Exported
from tests.glass.torch_model import activations, layers_of, replacing
from tests.runners import CpuRunner, NativeRunner, PlacedToy, Runner
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.torch

CASES = "tests.glass.run_cases"
CLOSE = 1e-4  # relative RMS
TOKENS = np.random.default_rng(0).integers(3, 300, 60).tolist()
# One of each mixer, and of each way to norm, to attend and to add.
QUICK = ["smollm2", "lfm2", "qwen3.5", "gemma 2"]
# Those with a layer that none of the others has.
OTHERS = ["gemma 4", "olmo 2", "granite shared moe", "qwen3-moe", "gpt-oss", "llama with biases"]


def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """Return the RMS of the differences in units of the RMS of torch's numbers."""
    unit = np.sqrt(np.square(wanted, dtype=np.float64).mean()) or 1.0
    return float(np.sqrt(np.square(got.astype(np.float64) - wanted).mean()) / unit)


def check_cache(runner: Runner, model: Any, where: str) -> None:
    wanted = activations(model, TOKENS)
    found = runner.run(CASES, "cached", where=where, tokens=TOKENS)
    cache = found["cache"]
    assert found["is_plain"]
    assert found["is_left"], "the session holds what it held"
    assert found["is_same"], "and answers are what they were"
    assert sorted(cache) == sorted(found["names"])
    assert difference(found["logits"], wanted["logits"]) < CLOSE
    compared = 0
    for name, array in wanted.items():
        if name in cache:
            got = cache[name].reshape(array.shape)
            assert difference(got, array) < CLOSE, name
            compared += 1
    assert compared >= 4
    check_sums(cache, len(layers_of(model)))


def check_sums(cache: dict[str, np.ndarray], layers: int) -> None:
    """Check what holds between the hooks of a block."""
    assert f"blocks.{layers - 1}.hook_resid_post" in cache
    assert f"blocks.{layers}.hook_resid_post" not in cache
    np.testing.assert_array_equal(cache["hook_embed"], cache["blocks.0.hook_resid_pre"])
    for number in range(layers):
        own = {
            n.partition(f"blocks.{number}.")[2]: a
            for n, a in cache.items()
            if f"blocks.{number}." in n
        }
        mixed = own["hook_attn_out"] if "hook_attn_out" in own else own["hook_mixer_out"]
        assert difference(own["hook_resid_pre"] + mixed, own["hook_resid_mid"]) < CLOSE
        outs = [own[n] for n in own if n in ("hook_mlp_out", "hook_shared_out")]
        if "hook_per_layer_out" not in own:
            total = own["hook_resid_mid"] + np.sum(outs, axis=0)
            assert difference(total, own["hook_resid_post"]) < CLOSE
        if "ln2.hook_normalized" in own:
            scaled = own["ln2.hook_normalized"] * own["ln2.hook_scale"]
            assert difference(scaled, own["hook_resid_mid"]) < CLOSE
        if "attn.hook_pattern" in own:
            scores = torch.tensor(own["attn.hook_attn_scores"]).softmax(-1).numpy()
            pattern = own["attn.hook_pattern"]
            is_whole = np.allclose(pattern.sum(-1), 1, atol=1e-5)  # else there are sinks
            assert not is_whole or difference(scores, pattern) < CLOSE


def test_activations_are_torchs(exported: Exported, native: NativeRunner) -> None:
    model, where = exported("smollm2")
    check_cache(native, model, where)


@pytest.mark.parametrize("family", QUICK)
def test_on_the_cpu(exported: Exported, cpu: CpuRunner, family: str) -> None:
    model, where = exported(family)
    check_cache(cpu, model, where)


def test_quantised_natively_and_in_the_page(toy: PlacedToy, toy_model: Path) -> None:
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    decoder = reference_decoder(source, source.decoder_config(CONTEXT))
    names = ["blocks.*.hook_resid_post", "blocks.0.attn.hook_pattern", "blocks.1.mlp.hook_pre"]
    found = toy.runner.run(CASES, "cached", where=toy.where, tokens=TOKENS, names=names)
    assert found["is_left"]
    assert found["is_same"]
    assert found["is_plain"]
    for end in (0, 20, len(TOKENS) - 1):
        wanted = hidden_states(decoder, TOKENS[: end + 1])
        for layer in range(2):
            got = found["cache"][f"blocks.{layer}.hook_resid_post"][0, end]
            assert difference(got, wanted[f"layers.{layer}"]) < 1e-3
    np.testing.assert_allclose(found["cache"]["blocks.0.attn.hook_pattern"].sum(-1), 1, rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("family", OTHERS)
def test_of_other_families(exported: Exported, cpu: CpuRunner, family: str) -> None:
    model, where = exported(family)
    check_cache(cpu, model, where)


def check_changes(runner: Runner, model: Any, where: str) -> None:
    found = runner.run(CASES, "changed", where=where, tokens=TOKENS)
    layers = layers_of(model)
    width = model.config.head_dim

    def logits() -> np.ndarray:
        with torch.no_grad():
            return np.asarray(model(torch.tensor([TOKENS]), use_cache=False).logits)

    def minus(x: torch.Tensor) -> torch.Tensor:
        return -x

    assert difference(found["nothing"], logits()) < CLOSE
    with replacing(layers[0], minus):
        assert difference(found["stream"], logits()) < CLOSE
        wanted = activations(model, TOKENS)["blocks.1.hook_resid_pre"]
        assert difference(found["cached"], wanted) < CLOSE
    with replacing(layers[0].self_attn.q_proj, minus):
        assert difference(found["queries"], logits()) < CLOSE
    with replacing(layers[1].input_layernorm, minus):
        assert difference(found["norm"], logits()) < CLOSE

    def without_second_head(_module: Any, args: Any) -> Any:
        z = args[0].clone()
        z[..., width : 2 * width] = 0
        return (z,)

    handle = layers[1].self_attn.o_proj.register_forward_pre_hook(without_second_head)
    assert difference(found["head"], logits()) < CLOSE
    handle.remove()
    handles = [
        layer.mlp.down_proj.register_forward_pre_hook(lambda _, args: (-args[0],))
        for layer in layers
    ]
    assert difference(found["hidden"], logits()) < CLOSE
    for handle in handles:
        handle.remove()

    def evenly(_module: Any, args: Any, out: torch.Tensor) -> torch.Tensor:
        heads = model.config.num_attention_heads
        counts = torch.arange(1, out.shape[1] + 1)[None, :, None]
        group = heads // model.config.num_key_value_heads
        means = (out.cumsum(1) / counts).view(1, -1, out.shape[-1] // width, width)
        found_z[0] = means.repeat_interleave(group, dim=2).flatten(2)
        return out

    found_z: list[torch.Tensor] = [torch.empty(0)]
    values = layers[0].self_attn.v_proj.register_forward_hook(evenly)
    mixed = layers[0].self_attn.o_proj.register_forward_pre_hook(lambda _, args: (found_z[0],))
    assert difference(found["pattern"], logits()) < CLOSE
    values.remove()
    mixed.remove()


def test_functions_change_what_follows(exported: Exported, native: NativeRunner) -> None:
    model, where = exported("smollm2")
    check_changes(native, model, where)


def test_functions_on_the_cpu(exported: Exported, cpu: CpuRunner) -> None:
    model, where = exported("smollm2")
    check_changes(cpu, model, where)
