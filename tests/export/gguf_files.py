"""GGUF files of the small checkpoints, laid out as llama.cpp's converter lays them out."""

from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quantize
from transformers import PreTrainedModel

from tests.export.checkpoints import TEMPLATE, make_model

GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(
    path: Path,
    family: str,
    architecture: str,
    kind: GGMLQuantizationType,
    claimed_layers: int | None = None,
) -> PreTrainedModel:
    """`kind` is for matrices; norms and biases are F32."""
    model = make_model(family)
    config = model.config
    writer = GGUFWriter(path, architecture)
    writer.add_name(f"test {family}")
    writer.add_license("mit")
    writer.add_block_count(claimed_layers or config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    _add_tokenizer(writer, config.vocab_size)
    for name, tensor in model.state_dict().items():
        if not (name == "lm_head.weight" and config.tie_word_embeddings):
            _add_tensor(writer, name, tensor, kind, model, permute=architecture == "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _add_tokenizer(writer: GGUFWriter, size: int) -> None:
    special = ["<|user|>", "<|assistant|>", "<|end|>"]
    letters = [chr(code) for code in range(0x100, 0x100 + size - len(special) - 1)]
    letters.append(letters[0] + letters[1])
    types = [TokenType.CONTROL] * len(special) + [TokenType.NORMAL] * len(letters)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([*special, *letters])
    writer.add_token_types(types)
    writer.add_token_merges([f"{letters[0]} {letters[1]}"])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)


def _add_tensor(
    writer: GGUFWriter,
    name: str,
    tensor: torch.Tensor,
    kind: GGMLQuantizationType,
    model: PreTrainedModel,
    permute: bool,
) -> None:
    values = tensor.float().numpy()
    if permute and ("q_proj" in name or "k_proj" in name):
        config = model.config
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        halves = values.reshape(heads, 2, -1, *values.shape[1:])
        values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
    if values.ndim == 1:
        writer.add_tensor(gguf_name(name), values)
    else:
        data = quantize(values, kind)
        writer.add_tensor(gguf_name(name), data, raw_dtype=kind)


def gguf_name(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    if name == "lm_head.weight":
        return "output.weight"
    owner, _, part = name.removeprefix("model.layers.").rpartition(".")
    number, _, inner = owner.partition(".")
    return f"blk.{number}.{GGUF_NAMES[inner]}.{part}"
