"""Adapter files that cannot be used, and what is said of each."""

import json
from typing import Any

import numpy as np
import pytest

from py_runtime.adapters.adapter import Adapter
from py_runtime.adapters.files import MemorySource, files_of, read_adapter
from py_runtime.adapters.peft import CONFIG, WEIGHTS, read_peft
from py_runtime.base.errors import InpageError
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.folder.plain_safetensors import read_safetensors, write_safetensors
from tests.adapters.written import gguf_adapter, peft_config, peft_tensors, random_factors
from tests.gguf.small import small_file
from tests.runners import wait

pytestmark = pytest.mark.torch

Q, V = "layers.0.self_attn.q_proj", "layers.0.self_attn.v_proj"
LINEARS = {Q: (32, 16), V: (16, 16), "layers.0.mlp.gate_proj": (24, 16)}
LINEARS |= {"layers.0.mlp.up_proj": (24, 16), "layers.0.self_attn.k_proj": (16, 16)}
FACTORS = random_factors({Q: (32, 16), V: (16, 16)}, 4, 1)


def read(
    tensors: dict[str, np.ndarray] | None = None, family: str = "llama", **config: Any
) -> Adapter:
    data = write_safetensors(peft_tensors(FACTORS) if tensors is None else tensors)
    values = peft_config(4, 8) | config
    return read_peft(json.dumps(values).encode(), data, BY_MODEL_TYPE[family], "x.safetensors")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"peft_type": "IA3"}, "an adapter of the type 'IA3'; only LORA is taken"),
        ({"use_dora": True}, "use_dora = True, which this engine cannot apply"),
        ({"bias": "all"}, "bias = 'all', which this engine cannot apply"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save = "),
        ({"init_lora_weights": "pissa_niter_4"}, "which changes the model's own weights"),
        ({"r": 8}, r"q_proj' has the rank 4, but adapter_config.json says 8"),
        ({"lora_alpha": "many"}, "lora_alpha is 'many', not a number"),
        ({"lora_alpha": True}, "lora_alpha is True, not a number"),
        ({"lora_alpha": 10**400}, "not a number of 1e\\+06 at most"),
        ({"lora_alpha": -1e300}, "not a number of 1e\\+06 at most"),
        ({"layers_to_transform": [1]}, r"q_proj', but layers_to_transform is \[1\]"),
    ],
)
def test_configs_that_are_refused(config: dict[str, Any], text: str) -> None:
    with pytest.raises(InpageError, match=text):
        read(**config)


def test_a_family_whose_matrices_are_multiplied() -> None:
    with pytest.raises(InpageError, match="matrices that Falcon-H1 multiplies"):
        read(family="falcon_h1")


def test_tensors_that_are_refused() -> None:
    tensors = peft_tensors(FACTORS)
    first = next(iter(tensors))
    with pytest.raises(InpageError, match=r"has 'lm_head.weight', which is no factor of a linear"):
        read({**tensors, "lm_head.weight": np.zeros((2, 2), np.float32)})
    with pytest.raises(InpageError, match="embedding_A'"):
        read({"base_model.model.model.embed_tokens.lora_embedding_A": np.zeros((4, 8))})
    with pytest.raises(InpageError, match=r"q_proj' lacks its lora_A"):
        read({name: data for name, data in tensors.items() if name != first})
    other = first.replace(".weight", ".other.weight")
    with pytest.raises(InpageError, match=r"has the lora_A of '.*q_proj' twice"):
        read({**tensors, other: tensors[first]})
    with pytest.raises(InpageError, match="which do not fit each other"):
        read({**tensors, first: np.zeros((5, 16), np.float32)})
    second = first.replace("lora_A", "lora_B")
    wide = {first: np.zeros((1025, 16), np.float32), second: np.zeros((16, 1025), np.float32)}
    with pytest.raises(InpageError, match="has the rank 1025; 1 to 1024 are taken"):
        read({**tensors, **wide})
    with pytest.raises(InpageError, match=r"q_proj' has numbers beyond 1e\+30"):
        read({**tensors, first: np.full((4, 16), 1e38, np.float32)})
    with pytest.raises(InpageError, match="infinite or not numbers"):
        read({**tensors, first: np.full((4, 16), np.inf, np.float32)})


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(InpageError, match=r"q_proj' adds \[32, 4\] x \[4, 16\], but the weight of"):
        read().updates(0, {**LINEARS, Q: (32, 20)}, 8)
    others = {name: dims for name, dims in LINEARS.items() if name != V}
    with pytest.raises(InpageError, match=f"but this model has no linear {V}"):
        read().updates(0, others, 8)


def test_scales() -> None:
    def scales(**config: Any) -> list[float]:
        return [part.scale for part in read(**config).parts.values()]

    assert scales() == [2.0, 2.0]
    assert scales(use_rslora=True) == [4.0, 4.0]
    assert scales(alpha_pattern={"self_attn.v_proj": 2}) == [2.0, 0.5]
    assert scales(rank_pattern={"q_proj": 4}, r=4) == [2.0, 2.0]


def test_a_fused_module_is_shared_out() -> None:
    rng = np.random.default_rng(0)
    down, up = rng.normal(size=(4, 16)), rng.normal(size=(64, 4))
    module = "base_model.model.model.layers.0.self_attn.qkv_proj"
    tensors = {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}
    found = read(tensors, "phi3").updates(3, LINEARS, 8)
    assert np.array_equal(found[Q].up, up[:32].astype(np.float32))
    assert np.array_equal(found[V].up, up[48:].astype(np.float32))
    assert {update.adapter for update in found.values()} == {3}


def test_gates_of_attention_take_turns_with_queries() -> None:
    rng = np.random.default_rng(0)
    down, up = rng.normal(size=(4, 16)), rng.normal(size=(64, 4)).astype(np.float32)
    module = "base_model.model.model.language_model.layers.0.self_attn.q_proj"
    tensors: dict[str, np.ndarray] = {
        f"{module}.lora_A.weight": down,
        f"{module}.lora_B.weight": up,
    }
    gates = "layers.0.self_attn.g_proj"
    found = read(tensors, "qwen3_5_text").updates(0, {Q: (32, 16), gates: (32, 16)}, 8)
    assert np.array_equal(found[Q].up[:16], np.concatenate([up[:8], up[16:24]]))
    assert np.array_equal(found[gates].up[:8], up[8:16])


def test_files_that_are_no_adapter() -> None:
    def given(**files: bytes) -> dict[str, MemorySource]:
        return {name: MemorySource(name, data) for name, data in files.items()}

    sound = write_safetensors(peft_tensors(FACTORS))
    with pytest.raises(InpageError, match=r"was given without adapter_config.json"):
        wait(read_adapter(given(**{WEIGHTS: sound}), "llama", 8))
    with pytest.raises(InpageError, match=r"was given as an adapter; give one .gguf file"):
        wait(read_adapter(given(**{CONFIG: b"{}"}), "llama", 8))
    with pytest.raises(InpageError, match="is not an adapter; load it as a model"):
        wait(read_adapter(given(**{"x.gguf": small_file()}), "llama", 8))
    other = gguf_adapter(FACTORS, 8, 0, "mamba")
    with pytest.raises(InpageError, match="is for 'mamba', which no model here is"):
        wait(read_adapter(given(**{"x.gguf": other}), "llama", 8))
    odd = gguf_adapter(FACTORS, 8, 0)
    with pytest.raises(InpageError, match="which are no heads of 12"):
        wait(read_adapter(given(**{"x.gguf": odd}), "llama", 12))


@pytest.mark.parametrize(
    ("where", "name", "files"),
    [
        ("a/own", "own", {CONFIG, WEIGHTS}),
        ("a/own/adapter_model.safetensors", "own", {CONFIG, WEIGHTS}),
        ("a/b.gguf", "b", {"b.gguf"}),
        (b"GGUF...", "adapter", {"adapter.gguf"}),
        ({CONFIG: b"", "mine.safetensors": b""}, "mine", {CONFIG, "mine.safetensors"}),
    ],
)
def test_names_of_adapters(where: Any, name: str, files: set[str]) -> None:
    found, sources = files_of(where)
    assert (found, set(sources)) == (name, files)


def test_safetensors_of_any_make() -> None:
    from safetensors.numpy import load, save

    tensors: dict[str, np.ndarray] = {
        "a": np.arange(6, dtype=np.float16).reshape(2, 3),
        "b": np.ones(3),
        "c": np.zeros((0, 2), np.float32),
    }
    found = read_safetensors("x", save(tensors))
    assert {name: found.floats(name).tolist() for name in tensors} == {
        name: data.tolist() for name, data in tensors.items()
    }
    back = load(write_safetensors({"a": tensors["a"]}, {"k": "v"}))
    assert np.array_equal(back["a"], tensors["a"])
    with pytest.raises(InpageError, match="its tensors end at byte"):
        read_safetensors("x", save(tensors) + b"\0")
    with pytest.raises(InpageError, match="its header would not fit in it"):
        read_safetensors("x", b"\xff" * 16)
