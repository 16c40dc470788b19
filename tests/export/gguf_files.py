"""GGUF files of the small checkpoints, laid out as llama.cpp's converter lays them out.

Names are those of gguf's own table, which llama.cpp's converter goes by.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from gguf import (
    MODEL_ARCH_NAMES,
    ExpertGatingFuncType,
    GGMLQuantizationType,
    GGUFWriter,
    RopeScalingType,
    TensorNameMap,
    TokenType,
    get_tensor_name_map,
    quantize,
)
from transformers import PretrainedConfig, PreTrainedModel

from tests.export.checkpoints import MXFP4, TEMPLATE, make_model
from tests.export.family_configs import ROWS

ARCHITECTURES = {name: row["gguf"] for name, row in ROWS.items() if "gguf" in row}
# Those whose rotary pairs the converter lays side by side, and those whose norms it adds 1 to.
PERMUTED = (
    *("llama", "smollm3", "granite", "granitemoe", "minicpm", "mistral3", "granitehybrid"),
    "nemotron_h",  # in vain: its heads do not turn
)
SCANNING = ("granitehybrid", "falcon-h1", "nemotron_h")  # Mamba-2 in some layers or all
FLOATS = ("ssm_a", "ssm_d", "ssm_norm")  # of two dims
PLUS_ONE = ("gemma", "gemma2", "gemma3", "qwen35")
FALCON_H1 = tuple(name for name, own in ARCHITECTURES.items() if own == "falcon-h1")
# Of heads that foresee tokens, whose layer is named like the model's.
OF_A_HEAD = {
    "fc": "eh_proj",
    "pre_fc_norm_embedding": "enorm",
    "pre_fc_norm_hidden": "hnorm",
    "norm": "shared_head_norm",
    "embed_tokens": "embed_tokens",
}
NO_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def write_gguf(
    path: Path,
    family: str,
    architecture: str,
    kind: GGMLQuantizationType,
    claimed_layers: int | None = None,
    changes: dict[str, Any] | None = None,
    change: Callable[[PreTrainedModel], None] | None = None,
    heads: int | None = None,
) -> PreTrainedModel:
    """Write the file, and return the model that it holds.

    `kind` is for matrices; norms and biases are F32. `changes` are to the family's config, `change`
    is to the model; `heads`: how many the file says it has.
    """
    model = make_model(family, changes)
    if change is not None:
        change(model)
    config = model.config.get_text_config()
    writer = GGUFWriter(path, architecture)
    # Of a model whose name has "phi-3" in it, llama.cpp wants the tokens that Phi-3 has.
    writer.add_name(f"test {family.replace('-', ' ')}")
    writer.add_license("mit")
    own_heads = int(hasattr(model, "mtp")) if heads is None else heads
    writer.add_block_count(claimed_layers or config.num_hidden_layers + own_heads)
    if own_heads:
        writer.add_nextn_predict_layers(own_heads)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(_hidden(model, config))
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(_kv_heads(config))
    head_dim = _widest_head(config)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    names = ("norm_eps", "layer_norm_epsilon", "rms_norm_eps")
    writer.add_layer_norm_rms_eps(next(getattr(config, n) for n in names if hasattr(config, n)))
    if config.model_type in ("lfm2", "lfm2_moe"):
        writer.add_shortconv_l_cache(config.conv_L_cache)
    if config.model_type in ("qwen3_moe", "lfm2_moe", "gpt_oss"):
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        hidden = getattr(config, "moe_intermediate_size", None) or config.intermediate_size
        writer.add_expert_feed_forward_length(hidden)
    if config.model_type == "lfm2_moe":
        writer.add_leading_dense_block_count(config.num_dense_layers)
        writer.add_expert_gating_func(ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_scale(config.routed_scaling_factor)
    if architecture in SCANNING:
        _add_mamba(writer, config)
    is_granite = architecture in ("granitemoe", "granitehybrid")
    if is_granite and config.num_local_experts:
        _add_granite_experts(writer, config)
    if config.model_type == "granitemoehybrid":
        writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")
    if config.model_type == "qwen3_5_text":
        _add_delta_net(writer, config)
    if config.model_type == "gemma4_text":
        _add_gemma4(writer, config)
    _add_rope(writer, config)
    _add_scales(writer, config, family)
    _add_window(writer, config)
    _add_tokenizer(writer, config.vocab_size)
    for name, values in converted(model, architecture):
        is_float = values.ndim == 1 or "conv" in name.split(".")[-2] or name.endswith(".bias")
        is_float = is_float or any(part in FLOATS for part in name.split("."))
        own = MXFP4 if architecture == "gpt-oss" and "_exps" in name else kind
        data = values if is_float else quantize(values, own)
        writer.add_tensor(name, data, raw_dtype=None if is_float else own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _widest_head(config: PretrainedConfig) -> int:
    """Full layers of Gemma 4 have a width of their own, which the main keys have."""
    if config.model_type != "gemma4_text":
        return int(config.head_dim)
    return int(config.per_layer_config["full_attention"].head_dim)


def _head_dim(config: PretrainedConfig) -> int:
    """Return the dims of a head, of sliding layers where they differ."""
    return int(config.to_dict()["head_dim"])


def _hidden(model: PreTrainedModel, config: PretrainedConfig) -> int | list[int]:
    if config.model_type == "gemma4_text":
        return [int(layer.mlp.intermediate_size) for layer in model.model.layers]
    if config.model_type == "nemotron_h":
        return [config.intermediate_size * (kind == "mlp") for kind in config.layer_types]
    if config.model_type == "lfm2":  # whose config has another number, to be rounded
        return int(model.model.layers[0].feed_forward.w1.out_features)
    if getattr(config, "num_local_experts", 0):
        return int(config.intermediate_size)
    return int(getattr(config, "shared_intermediate_size", None) or config.intermediate_size)


def _kv_heads(config: PretrainedConfig) -> int | list[int]:
    """None in layers that convolve; the converter of hybrids says it of each layer."""
    heads = int(config.num_key_value_heads)
    hybrids = ("lfm2", "lfm2_moe", "granitemoehybrid", "nemotron_h")
    if config.model_type not in hybrids:
        return heads
    return [heads * (kind == "full_attention") for kind in config.layer_types]


# Metadata ----------------------------------------------------------------------------------------


def _add_rope(writer: GGUFWriter, config: PretrainedConfig) -> None:
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or NO_ROPE
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    turned = _widest_head(config)
    if rope["rope_type"] != "proportional":
        turned *= rope.get("partial_rotary_factor", 1.0)
    writer.add_rope_dimension_count(int(turned))
    if rope["rope_type"] == "longrope":
        original = rope["original_max_position_embeddings"]
        scale = config.max_position_embeddings / original
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(scale) / np.log(original))))
        writer.add_rope_scaling_orig_ctx_len(original)
        for part in ("long", "short"):
            factors = np.array(rope[f"{part}_factor"], np.float32)
            writer.add_tensor(f"rope_factors_{part}.weight", factors)
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if "attention_factor" in rope:
            writer.add_rope_scaling_yarn_attn_factor(rope["attention_factor"])
        if "mscale_all_dim" in rope:
            writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        if "llama_4_scaling_beta" in rope:
            writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if "mrope_section" in rope:
        writer.add_rope_dimension_sections([*rope["mrope_section"], 0])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, config.head_dim))


def llama3_factors(rope: dict[str, Any], head_dim: int) -> np.ndarray:
    """Compute the factors as llama.cpp's converter does."""
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    original = rope["original_max_position_embeddings"]
    factors = []
    for at in range(0, head_dim, 2):
        length = 2 * np.pi * rope["rope_theta"] ** (at / head_dim)
        smooth = (original / length - low) / (high - low)
        if length < original / high:
            factors.append(1.0)
        elif length > original / low:
            factors.append(rope["factor"])
        else:
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, np.float32)


def _add_gemma4(writer: GGUFWriter, config: PretrainedConfig) -> None:
    """Pairs of full layers that do not turn are divided by so much that they stand still."""
    writer.add_key_length_swa(_head_dim(config))
    writer.add_value_length_swa(_head_dim(config))
    writer.add_rope_dimension_count_swa(_head_dim(config))
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    pairs = _widest_head(config) // 2
    share = config.rope_parameters["full_attention"]["partial_rotary_factor"]
    factors = np.where(np.arange(pairs) < int(pairs * share), 1.0, 1e30)
    writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))


def _add_scales(writer: GGUFWriter, config: PretrainedConfig, family: str) -> None:
    if hasattr(config, "embedding_multiplier") and family not in FALCON_H1:
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
        if family != "minicpm":  # whose scores have the usual scale
            writer.add_attention_scale(config.attention_multiplier)
    if getattr(config, "attn_logit_softcapping", None):
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def _add_granite_experts(writer: GGUFWriter, config: PretrainedConfig) -> None:
    """Their width is that of an MLP elsewhere."""
    writer.add_expert_count(config.num_local_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    if getattr(config, "shared_intermediate_size", 0):
        writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)


def _add_mamba(writer: GGUFWriter, config: PretrainedConfig) -> None:
    heads, head_dim, state, groups, taps = mamba_sizes(config)
    writer.add_ssm_conv_kernel(taps)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(heads * head_dim)


def mamba_sizes(config: PretrainedConfig) -> tuple[int, ...]:
    """Return heads, columns and rows of a head, groups, and taps."""
    names = ("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv")
    if config.model_type == "nemotron_h":
        names = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel")
    return tuple(int(getattr(config, name)) for name in names)


def _add_delta_net(writer: GGUFWriter, config: PretrainedConfig) -> None:
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)


def _add_window(writer: GGUFWriter, config: PretrainedConfig) -> None:
    """Add the window.

    Only some converters say which layers slide, the others leave it to the name.
    """
    if not getattr(config, "sliding_window", None) or config.model_type == "qwen2":
        return
    writer.add_sliding_window(config.sliding_window)
    if config.model_type in ("olmo3", "exaone4", "gemma4_text"):
        writer.add_sliding_window_pattern([t == "sliding_attention" for t in config.layer_types])


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


# Tensors -----------------------------------------------------------------------------------------


def converted(model: PreTrainedModel, architecture: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the tensors by their names in GGUF, changed as this architecture's converter does."""
    config = model.config.get_text_config()
    for full_name, tensor in model.state_dict().items():
        name = full_name.replace("language_model.", "")
        values = tensor.float().numpy()
        if name.startswith("model.visual.") or (
            name == "lm_head.weight" and model.config.tie_word_embeddings
        ):
            continue
        name = name.replace("mtp.layers.0.", f"model.layers.{config.num_hidden_layers}.")
        if name.startswith("mtp."):
            own = OF_A_HEAD[name.removeprefix("mtp.").removesuffix(".weight")]
            is_norm = name.endswith("norm.weight") or "_norm_" in name
            yield f"blk.{config.num_hidden_layers}.nextn.{own}.weight", values + is_norm
            continue
        name = name.replace("feed_forward.experts", "mlp.experts")
        name = name.replace("block_sparse_moe.experts", "mlp.experts")
        name = name.replace("block_sparse_moe.router", "block_sparse_moe.router.layer")
        name = name.replace(".expert_bias", ".expert_bias.bias")
        name = name.replace(".sinks", ".sinks.weight")
        if "mlp.experts." in name and architecture == "gpt-oss":
            yield from _of_interleaved_experts(name, values)
            continue
        if "mlp.experts." in name:
            yield from _of_experts(name, values, architecture)
            continue
        if name.endswith("layer_scalar"):
            name += ".weight"
        if "self_attn.k_proj" in name and architecture == "gemma4":  # of the last layers unread
            number = int(name.split(".")[2]) + config.num_kv_shared_layers
            if number >= config.num_hidden_layers - config.num_kv_shared_layers:
                is_full = config.layer_types[number] == "full_attention"
                width = _widest_head(config) if is_full else _head_dim(config)
                zeros = np.zeros((config.num_key_value_heads * width, values.shape[1]), np.float32)
                yield f"blk.{number}.attn_k.weight", zeros
        if architecture in SCANNING:
            name, values = _of_mamba(name, values, config)
        if values.ndim == 3:  # a convolution: [channels, 1, taps]
            values = values[:, 0]
        if architecture in PLUS_ONE and name.endswith("norm.weight"):
            values = values if "linear_attn" in name else values + 1
        if "linear_attn" in name:
            name, values = _as_tiled(name, values, config)
        if architecture in PERMUTED and ("q_proj" in name or "k_proj" in name):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            halves = values.reshape(heads, 2, -1, *values.shape[1:])
            values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
        if "shared_mlp.input_linear" in name:
            gate, up = np.split(values, 2)
            mlp = name.replace("shared_mlp.input_linear.weight", _mlp_of(config))
            yield gguf_name(f"{mlp}.gate_proj.weight", architecture), gate
            yield gguf_name(f"{mlp}.up_proj.weight", architecture), up
            continue
        name = name.replace("shared_mlp.output_linear", f"{_mlp_of(config)}.down_proj")
        yield gguf_name(name, architecture), values


def _mlp_of(config: PretrainedConfig) -> str:
    """Return the name of what all tokens go through."""
    return "mlp.shared_expert" if getattr(config, "num_local_experts", 0) else "mlp"


def _of_experts(
    name: str, values: np.ndarray, architecture: str
) -> Iterator[tuple[str, np.ndarray]]:
    """[experts, rows, columns]; transformers holds gate and up of an expert as one."""
    if name.endswith("down_proj"):
        yield gguf_name(f"{name}.weight", architecture), values
        return
    for part, own in zip(("gate_proj", "up_proj"), np.split(values, 2, axis=1), strict=True):
        whole = name.replace("gate_up_proj", part)
        yield gguf_name(f"{whole}.weight", architecture), np.ascontiguousarray(own)


def _of_interleaved_experts(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """[experts, columns, rows], biases without columns; gate and up take turns."""
    whole, ending = (name.removesuffix("_bias"), ".bias" if name.endswith("_bias") else ".weight")
    rows_first = values.swapaxes(1, 2) if values.ndim == 3 else values
    parts = {"down_proj": rows_first}
    if whole.endswith("gate_up_proj"):
        parts = {"gate_proj": rows_first[:, ::2], "up_proj": rows_first[:, 1::2]}
    for part, own in parts.items():
        path = whole.rpartition(".")[0]
        yield gguf_name(f"{path}.{part}{ending}", "gpt-oss"), np.ascontiguousarray(own)


def _of_mamba(name: str, values: np.ndarray, config: PretrainedConfig) -> tuple[str, np.ndarray]:
    """Compute, rename and shape what the converter does; Falcon-H1's multipliers are computed."""
    name = name.replace("dt_bias", "dt_proj.bias")
    if config.model_type == "nemotron_h":
        name = name.replace("model.", "backbone.", 1)
    if config.model_type == "falcon_h1":
        values = values * _falcon_multiplier(name, config)
    if name.endswith("A_log"):
        return name, -np.exp(values)[:, np.newaxis]
    if name.endswith(".D"):
        return name, values[:, np.newaxis]
    if name.endswith(("mamba.norm.weight", "mixer.norm.weight")):
        return name, values.reshape(mamba_sizes(config)[3], -1)
    return name, values


def _falcon_multiplier(name: str, config: PretrainedConfig) -> Any:
    heads, head_dim, state, groups, _ = mamba_sizes(config)
    runs = (heads * head_dim, heads * head_dim, groups * state, groups * state, heads)
    ahead, (gate, down) = config.attention_in_multiplier, config.mlp_multipliers
    parts = np.repeat(np.array(config.ssm_multipliers, np.float32), runs)[:, np.newaxis]
    by_part = {
        "in_proj": parts * config.ssm_in_multiplier,
        "mamba.out_proj": config.ssm_out_multiplier,
        "q_proj": ahead,
        "k_proj": ahead * config.key_multiplier,
        "v_proj": ahead,
        "o_proj": config.attention_out_multiplier,
        "gate_proj": gate,
        "down_proj": down,
        "lm_head": config.lm_head_multiplier,
        "embed_tokens": config.embedding_multiplier,
    }
    return np.float32(next((by_part[part] for part in by_part if f"{part}.weight" in name), 1.0))


def _as_tiled(name: str, values: np.ndarray, config: PretrainedConfig) -> tuple[str, np.ndarray]:
    """Put a delta net's value heads in another order: those that share a key head lie apart.

    It also computes and renames what the converter does.
    """
    shared = config.linear_num_value_heads // config.linear_num_key_heads
    keys = 2 * config.linear_num_key_heads * config.linear_key_head_dim

    def tiled(rows: np.ndarray) -> np.ndarray:
        heads = rows.reshape(config.linear_num_key_heads, shared, -1, *rows.shape[1:])
        return np.ascontiguousarray(heads.swapaxes(0, 1)).reshape(rows.shape)

    part = name.split("linear_attn.")[1].split(".")[0]
    if part in ("in_proj_qkv", "conv1d"):
        return name, np.concatenate((values[:keys], tiled(values[keys:])))
    if part == "out_proj":
        return name, np.ascontiguousarray(tiled(np.ascontiguousarray(values.T)).T)
    if part == "A_log":
        return name, -np.exp(tiled(values))
    if part == "dt_bias":
        return name.replace("dt_bias", "dt_proj.bias"), tiled(values)
    return name, values if part == "norm" else tiled(values)


def gguf_name(name: str, architecture: str = "llama") -> str:
    """Return a tensor's name in GGUF.

    An architecture that gguf does not know is named like Llama.
    """
    found = names_of(architecture).get_name(name, try_suffixes=(".weight", ".bias"))
    assert found is not None, name
    return found


@cache
def names_of(architecture: str) -> TensorNameMap:
    """Return the table of 20,000 names, made once for each architecture."""
    known = {text: number for number, text in MODEL_ARCH_NAMES.items()}
    return get_tensor_name_map(known.get(architecture, known["llama"]), 64)
