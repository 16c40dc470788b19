"""LFM2: most layers are short convolutions; some models have experts, whose scores are sigmoids."""

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.config import HEADS, SHORT_CONV, SIGMOID
from py_runtime.decoder.conventions import PYTHON, Convention, Markers
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, experts
from py_runtime.decoder.limits import MAX_HIDDEN, MAX_TAPS, SCALES
from py_runtime.decoder.mixtures import Mixture
from py_runtime.decoder.words import FULL, Words

MAX_TIMES, MAX_STEP = 1000, MAX_HIDDEN  # of an MLP's width
SIGMOID_GATING = 2  # of experts, as llama.cpp counts them
CONV = "conv"  # in layer_types

TENSORS = {
    "norm": "embedding_norm",
    "input_layernorm": "operator_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "self_attn.out_proj",
    "self_attn.q_norm": "self_attn.q_layernorm",
    "self_attn.k_norm": "self_attn.k_layernorm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
}
EXPERT_TENSORS = {
    "mlp": "feed_forward",
    "mlp.gate": "feed_forward.gate",
    "mlp.experts.*.gate_proj": "feed_forward.experts.*.w1",
    "mlp.experts.*.up_proj": "feed_forward.experts.*.w3",
    "mlp.experts.*.down_proj": "feed_forward.experts.*.w2",
}
GGUF_TENSORS = {"norm": "token_embd_norm"}

CALLS = Convention(
    rank=4,
    known_by=("<|tool_call_start|>", "<|tool_list_start|>"),
    calls=(Markers("<|tool_call_start|>", "<|tool_call_end|>", PYTHON),),
    forced="<|tool_call_start|>",
)


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Take layers without heads for keys and values for convolutions."""
    layers, most = values["num_hidden_layers"], values["num_attention_heads"]
    kv_heads = keys.integers(
        "attention.head_count_kv", layers, 0, most, values["num_key_value_heads"]
    )
    return {
        "layer_types": [FULL if heads else CONV for heads in kv_heads],
        "conv_L_cache": keys.integer("shortconv.l_cache", 2, MAX_TAPS),
        "block_auto_adjust_ff_dim": False,  # the width that the file says is the one it has
    }


def gguf_words_with_experts(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Add experts; files may leave out that their scores are sigmoids."""
    layers = values["num_hidden_layers"]
    gating = keys.integer("expert_gating_func", 0, 1 << 10, default=SIGMOID_GATING)
    if gating != SIGMOID_GATING:
        raise keys.unsupported("expert_gating_func", f"is {gating}")
    return {
        **gguf_words(keys, values, rope),
        **experts(keys, values, rope),
        "num_dense_layers": keys.integer("leading_dense_block_count", 0, layers, default=0),
        "routed_scaling_factor": keys.number("expert_weights_scale", *SCALES, default=1.0),
    }


def checkpoint_words(values: Words) -> Words:
    """Return the width that its MLPs really have, the epsilon of its norms and its activation.

    Checkpoints may state the width before it is scaled and rounded up, may have a key of their own
    for the epsilon, and take the activation for granted.
    """
    hidden = values.get("block_ff_dim") or values.get("intermediate_size")
    if type(hidden) is int and values.get("block_auto_adjust_ff_dim", True):
        hidden = 2 * hidden // 3
        multiplier = values.get("block_ffn_dim_multiplier", 1.0)
        step = values.get("block_multiple_of", 256)
        if multiplier is not None:
            if not isinstance(multiplier, int | float) or not 0 < multiplier < MAX_TIMES:
                raise ModelError(
                    f"block_ffn_dim_multiplier is {short(multiplier)}", "get another model"
                )
            if type(step) is not int or not 0 < step < MAX_STEP or hidden > MAX_HIDDEN:
                raise ModelError(
                    f"block_multiple_of is {short(step)} for {short(hidden)} columns",
                    "get another model",
                )
            hidden = -(-int(multiplier * hidden) // step) * step
    return {
        **checkpoint_words_with_experts(values),
        "intermediate_size": hidden,
        "block_ff_dim": hidden,
        "block_auto_adjust_ff_dim": False,
    }


def checkpoint_words_with_experts(values: Words) -> Words:
    """Return what is called otherwise or goes without saying."""
    eps = values.get("norm_eps", values.get("rms_norm_eps", 1e-5))
    return {"rms_norm_eps": eps, "hidden_act": "silu"}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="lfm2",
            known_as="LFM2 (dense)",
            checkpoint=CheckpointForm(tensors=TENSORS, words=checkpoint_words),
            gguf=GgufForm(architecture="lfm2", tensors=GGUF_TENSORS, words=gguf_words),
            qk_norm=HEADS,
            mixers={CONV: SHORT_CONV},
        ),
        Family(
            model_type="lfm2_moe",
            known_as="LFM2 with experts",
            checkpoint=CheckpointForm(
                tensors=TENSORS | EXPERT_TENSORS, words=checkpoint_words_with_experts
            ),
            gguf=GgufForm(
                architecture="lfm2moe",
                tensors=GGUF_TENSORS,
                computed=("expert_count",),
                words=gguf_words_with_experts,
            ),
            qk_norm=HEADS,
            mixers={CONV: SHORT_CONV},
            mixture=Mixture(SIGMOID),
        ),
    ),
    calls=(CALLS,),
)
