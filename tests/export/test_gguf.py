"""GGUF: known types bit for bit, the others with a warning, rows of q and k put back in order."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFReader, dequantize
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from export import gguf_source
from export.decoder_graph import export_decoder
from export.errors import ExportError
from export.gguf_source import GgufSource
from export.reference import dequantise, last_logits, reference_decoder
from export.sources import Quantisation
from py_runtime.gguf.model import open_model
from py_runtime.model.config import Config
from py_runtime.tokens import Tokenizer
from py_runtime.weights.byte_source import FileSource
from tests.export.gguf_files import gguf_name, write_gguf
from tests.gguf import small
from tests.gguf.written import file
from tests.golden import Tolerance, compare
from tests.runners import wait

pytestmark = pytest.mark.torch

BIT_FOR_BIT = {
    Kind.F32: "f32",
    Kind.F16: "f16",
    Kind.BF16: "bf16",
    Kind.Q4_0: "q4_0",
    Kind.Q4_1: "q4_1",
    Kind.Q5_0: "q5_0",
    Kind.Q5_1: "q5_1",
    Kind.Q8_0: "q8_0",
}
FAMILIES = {
    "llama 2": "llama",
    "smollm2": "llama",
    "qwen2.5": "qwen2",
    "qwen3": "qwen3",
    "gemma 4": "gemma4",
}


@pytest.mark.parametrize("kind", BIT_FOR_BIT, ids=lambda kind: kind.name)
def test_known_types_are_taken_over_bit_for_bit(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path, "qwen2.5", "qwen2", kind)  # no rows of it are out of order
    source = GgufSource.open(path, Quantisation("q4gsw"))
    stored = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    for weight in ("embed_tokens.weight", "layers.1.mlp.down_proj.weight"):
        tensor = stored[gguf_name(f"model.{weight}")]
        exact = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        assert source.kind(weight).name == BIT_FOR_BIT[kind]
        rebuilt = dequantise(source.kind(weight), source.parts(weight), len(exact))
        np.testing.assert_array_equal(rebuilt, exact)
        np.testing.assert_array_equal(source.dense(weight), exact)
    assert source.warnings == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_gguf_computes_what_transformers_does(family: str, tmp_path: Path) -> None:
    """Nothing is lost in F32, so a wrong row order or a wrong config would show."""
    path = tmp_path / "model.gguf"
    model = write_gguf(path, family, FAMILIES[family], Kind.F32)
    source = GgufSource.open(path, Quantisation("none"))
    decoder = reference_decoder(source, source.decoder_config(None))
    tokens = torch.randint(0, 320, (50,), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.no_grad():
        wanted = model(torch.tensor([tokens])).logits[0, -1].double().numpy()
    compare(family, last_logits(decoder, tokens), wanted, Tolerance(1e-3, 1e-5))


def test_quantised_rows_are_put_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    model = write_gguf(path, "llama 2", "llama", Kind.Q8_0)
    source = GgufSource.open(path, Quantisation())
    name = "layers.0.self_attn.q_proj.weight"
    wanted = model.state_dict()[f"model.{name}"].numpy()
    got = dequantise(source.kind(name), source.parts(name), len(wanted))
    np.testing.assert_allclose(got, wanted, atol=0.005)


def test_other_types_are_quantised_again_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_source, "kind_of", lambda stored, columns: None)
    path = tmp_path / "model.gguf"
    write_gguf(path, "smollm2", "llama", Kind.Q5_0)
    source = GgufSource.open(path, Quantisation("q8"))
    graph = export_decoder(source, source.decoder_config(32))
    assert {kind.name for kind in source.kinds(graph.config).values()} == {"q8_0"}
    assert source.warnings == ["Q5_0 tensors are dequantised and quantised again as q8"]


def test_metadata_gives_config_tokenizer_and_template(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path, "smollm2", "llama", Kind.Q4_0)
    source = GgufSource.open(path, Quantisation())
    assert source.name == "test smollm2"
    assert source.licence == "mit"
    config = source.decoder_config(None)
    assert (config.layers, config.tied) == (2, True)
    assert (config.attention.heads, config.attention.kv_heads) == (4, 2)
    assert "chat_template" in source.tokenizer["tokenizer_config.json"]
    assert source.tokenizer["tokenizer.json"]["model"]["type"] == "BPE"


def test_parts_of_a_gguf_are_found_beside_each_other(tmp_path: Path) -> None:
    tensors = small.tensors("Q4_1")
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    for number, (values, given) in enumerate([(small.metadata(), tensors[:5]), ({}, tensors[5:])]):
        data = file(values | split | {"split.no": number}, given)
        (tmp_path / f"x-0000{number + 1}-of-00002.gguf").write_bytes(data)
    (tmp_path / "whole.gguf").write_bytes(file(small.metadata(), tensors))
    whole, parts = (
        GgufSource.open(tmp_path / name, Quantisation())
        for name in ("whole.gguf", "x-00001-of-00002.gguf")
    )
    for name in ("embed_tokens.weight", "layers.0.mlp.down_proj.weight"):
        np.testing.assert_array_equal(whole.dense(name), parts.dense(name))
    (tmp_path / "x-00002-of-00002.gguf").unlink()
    with pytest.raises(ExportError, match=r"there is no file .*x-00002-of-00002.gguf"):
        GgufSource.open(tmp_path / "x-00001-of-00002.gguf", Quantisation())


YARN_KEYS = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 2048,
    "rope.scaling.yarn_attn_factor": 1.25,
    "rope.scaling.yarn_beta_fast": 8.0,
    "rope.scaling.yarn_beta_slow": 2.0,
}


@pytest.mark.parametrize("lost", [None, *YARN_KEYS])
def test_no_key_of_yarn_is_lost(lost: str | None, tmp_path: Path) -> None:
    """The tables are transformers', and each key changes them."""
    path = tmp_path / "x.gguf"
    keys = {f"llama.{key}": value for key, value in YARN_KEYS.items()}
    path.write_bytes(file(small.metadata() | keys, small.tensors()))
    cos = GgufSource.open(path, Quantisation()).rotary_tables(64)["cos"]
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "attention_factor": 1.25}
    rope |= {"original_max_position_embeddings": 2048, "beta_fast": 8.0, "beta_slow": 2.0}
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "max_position_embeddings": 64}
    config = AutoConfig.for_model("llama", rope_parameters=rope, **sizes)
    theirs, _ = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(64)[None])
    np.testing.assert_allclose(cos, theirs[0].numpy(), atol=2e-5)
    if lost is not None and lost != "rope.scaling.factor":
        del keys[f"llama.{lost}"]
        path.write_bytes(file(small.metadata() | keys, small.tensors()))
        without = GgufSource.open(path, Quantisation()).rotary_tables(64)["cos"]
        assert np.abs(without - cos).max() > 1e-3


# The special tokens of families whose answers end in several ways, the one that files name first,
# and those among them that end no answer.
SEVERAL_ENDS: dict[str, tuple[list[str], set[str]]] = {
    "llama 3": (["<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"], set()),
    "qwen": (["<|im_end|>", "<|endoftext|>", "<|im_start|>"], {"<|im_start|>"}),
    "phi-3.5": (["<|endoftext|>", "<|end|>", "<|user|>"], {"<|user|>"}),
    "granite": (["<|end_of_text|>", "<|endoftext|>", "<|start_of_role|>"], {"<|start_of_role|>"}),
    "smollm2": (["<|im_end|>", "<|endoftext|>", "<reponame>"], set()),
    "gemma 3": (["<eos>", "<end_of_turn>", "<start_of_turn>"], {"<start_of_turn>"}),
    "gemma 4": (["<eos>", "<turn|>", "<|tool_response>", "<|turn>"], {"<|turn>"}),
    "gpt-oss": (["<|return|>", "<|call|>", "<|end|>", "<|start|>"], {"<|end|>", "<|start|>"}),
}


@pytest.mark.parametrize("family", SEVERAL_ENDS)
def test_a_folder_has_every_end_that_its_file_has(family: str, tmp_path: Path) -> None:
    """Both the exporter and the engine itself find them."""
    special, others = SEVERAL_ENDS[family]
    tokens = [*special, *small.TOKENS[len(special) :]]
    types = [small.CONTROL] * len(special) + [small.NORMAL] * (len(tokens) - len(special))
    path = tmp_path / "x.gguf"
    changes = {"tokens": tokens, "token_type": types, "eos_token_id": 0, "bos_token_id": 3}
    path.write_bytes(
        small.small_file(**{f"tokenizer.ggml.{key}": value for key, value in changes.items()})
    )
    source = GgufSource.open(path, Quantisation())
    opened = wait(open_model([FileSource(path)]))
    for config, files in ((source.hf_config, source.tokenizer), (opened.values, opened.tokenizer)):
        tokenizer = Tokenizer.from_json(files["tokenizer.json"])
        ends = Config(files["tokenizer_config.json"], config).end_tokens(tokenizer)
        assert {tokens[end] for end in ends} == set(special) - others
