"""GGUF: known types bit for bit, the others with a warning, rows of q and k put back in order."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFReader, dequantize

from export.decoder_graph import export_decoder
from export.gguf_source import GgufSource
from export.reference import dequantise, last_logits, reference_decoder
from export.sources import Quantisation
from tests.export.gguf_files import gguf_name, write_gguf
from tests.golden import Tolerance, compare

BIT_FOR_BIT = {
    Kind.F32: "f32",
    Kind.F16: "f32",
    Kind.BF16: "f32",
    Kind.Q4_0: "q4_0",
    Kind.Q4_1: "q4_1",
    Kind.Q8_0: "q8_0",
}
FAMILIES = {"llama 2": "llama", "smollm2": "llama", "qwen2.5": "qwen2", "qwen3": "qwen3"}


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
    """In F32 nothing is lost, so a wrong row order or a wrong config would show."""
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


def test_other_types_are_quantised_again_with_a_warning(tmp_path: Path) -> None:
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
    assert (config.layers, config.heads, config.kv_heads, config.tied) == (2, 4, 2, True)
    assert "chat_template" in source.tokenizer["tokenizer_config.json"]
    assert source.tokenizer["tokenizer.json"]["model"]["type"] == "BPE"
