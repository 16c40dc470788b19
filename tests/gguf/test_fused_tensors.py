"""Tensors that hold several of the decoder's, of sizes that are pairwise different.

The tests show where each part lies, what is read, and what stays as it is.
"""

from typing import Any, cast

import pytest

from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import decoder_config
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.gguf.container import TensorInfo
from py_runtime.gguf.fused_tensors import split_fused
from py_runtime.gguf.reader import GgufFile, StoredTensor
from py_runtime.gguf.tensor_types import BY_NAME
from tests.decoder.test_config_json import BARE, DELTA, EXPERTS

WIDTH, HIDDEN, Q_ROWS, KV_ROWS = 84, 109, 6 * 14, 3 * 14
F32 = BY_NAME["F32"]


def stored(name: str, *dims: int, offset: int = 1000) -> StoredTensor:
    nbytes = 4
    for size in dims:
        nbytes *= size
    return StoredTensor(TensorInfo(name, F32, dims, offset, nbytes), cast(Any, "source"))


def apart(family: str, *tensors: StoredTensor, **changes: Any) -> dict[str, StoredTensor]:
    values = BARE | {"model_type": family, "head_dim": 14} | changes
    config: DecoderConfig = decoder_config(values)
    held = {tensor.info.name: tensor for tensor in tensors}
    file = GgufFile("x.gguf", 1, cast(Any, None), held)
    return split_fused(file, BY_MODEL_TYPE[family].gguf, config).tensors


def placed(tensor: StoredTensor) -> tuple[Any, ...]:
    return tensor.info.dims, tensor.info.offset, tensor.info.nbytes


def test_queries_keys_and_values_one_after_the_other() -> None:
    rows = Q_ROWS + 2 * KV_ROWS
    found = apart(
        "phi3",
        stored("blk.1.attn_qkv.weight", rows, WIDTH),
        stored("blk.1.ffn_up.weight", 2 * HIDDEN, WIDTH, offset=5000),
    )
    row = 4 * WIDTH
    assert {name: placed(tensor) for name, tensor in found.items()} == {
        "blk.1.attn_q.weight": ((Q_ROWS, WIDTH), 1000, Q_ROWS * row),
        "blk.1.attn_k.weight": ((KV_ROWS, WIDTH), 1000 + Q_ROWS * row, KV_ROWS * row),
        "blk.1.attn_v.weight": ((KV_ROWS, WIDTH), 1000 + (Q_ROWS + KV_ROWS) * row, KV_ROWS * row),
        "blk.1.ffn_gate.weight": ((HIDDEN, WIDTH), 5000, HIDDEN * row),
        "blk.1.ffn_up.weight": ((HIDDEN, WIDTH), 5000 + HIDDEN * row, HIDDEN * row),
    }
    last = found["blk.1.attn_v.weight"].info.name
    assert last == f"blk.1.attn_qkv.weight, rows {Q_ROWS + KV_ROWS} to {rows - 1}"


@pytest.mark.parametrize("dims", [(Q_ROWS + 2 * KV_ROWS - 1, WIDTH), (Q_ROWS + 2 * KV_ROWS, 85)])
def test_one_of_other_dims_stays_as_it_is(dims: tuple[int, int]) -> None:
    whole = stored("blk.1.attn_qkv.weight", *dims)
    assert apart("phi3", whole) == {"blk.1.attn_qkv.weight": whole}


def test_experts_lie_one_below_the_other() -> None:
    given = EXPERTS | {"moe_intermediate_size": 17}
    found = apart(
        "qwen3_moe",
        stored("blk.0.ffn_gate_exps.weight", 9, 17, WIDTH),
        stored("blk.0.ffn_down_exps.weight", 9, WIDTH, 17),
        stored("blk.1.ffn_up_exps.weight", 8, 17, WIDTH),
        stored("blk.0.ffn_gate_inp.weight", 9, WIDTH),
        **given,
    )
    assert [tensor.info.dims for tensor in found.values()] == [
        *((9 * 17, WIDTH), (9 * WIDTH, 17), (8, 17, WIDTH), (9, WIDTH)),
    ]


def test_gates_lie_behind_the_queries_of_their_heads() -> None:
    both = stored("blk.1.attn_q.weight", 2 * Q_ROWS, WIDTH)
    found = apart("qwen3_5_text", both, **DELTA)
    queries = found.pop("blk.1.attn_q.weight")
    (gates,) = found.values()
    assert placed(queries) == placed(gates) == ((Q_ROWS, WIDTH), 1000, both.info.nbytes)
    assert gates.info.name == "blk.1.attn_q.weight, gates"
    other = stored("blk.1.attn_q.weight", 2 * Q_ROWS + 1, WIDTH)
    assert apart("qwen3_5_text", other, **DELTA) == {"blk.1.attn_q.weight": other}
    assert apart("qwen3", both) == {"blk.1.attn_q.weight": both}


def test_layers_for_tokens_to_come_are_not_read() -> None:
    tensors = [stored(f"blk.{number}.x.weight", 3) for number in (4, 5, 12)]
    assert set(apart("qwen3_5_text", *tensors, **DELTA)) == {"blk.4.x.weight"}
    assert len(apart("qwen3", *tensors)) == 3
    named = stored("output_norm.weight", 3)
    assert set(apart("qwen3_5_text", named, **DELTA)) == {"output_norm.weight"}


def test_names_of_one_family_become_the_usual_ones() -> None:
    assert set(apart("lfm2", stored("token_embd_norm.weight", 3))) == {"output_norm.weight"}
    assert set(apart("llama", stored("token_embd_norm.weight", 3))) == {"token_embd_norm.weight"}
    found = apart("qwen3_5_text", stored("blk.0.post_attention_norm.weight", 3), **DELTA)
    assert set(found) == {"blk.0.ffn_norm.weight"}
    both = [stored("token_embd_norm.weight", 3), stored("output_norm.weight", 5)]
    assert {name: tensor.info.dims for name, tensor in apart("lfm2", *both).items()} == {
        "token_embd_norm.weight": (3,),
        "output_norm.weight": (5,),
    }
