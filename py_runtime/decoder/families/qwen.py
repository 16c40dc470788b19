"""Qwen 2.5, with biases; Qwen 3, with norms of heads; and Qwen 3.5, mostly gated delta nets.

Qwen 3 also comes with experts, and as the text part of a model that sees.
"""

from py_runtime.decoder.config import DELTA_NET, HEADS
from py_runtime.decoder.conventions import JSON_IN_TAGS, TAGGED, THINK_TAGS, Convention, Markers
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, experts
from py_runtime.decoder.limits import MAX_HEAD_DIM, MAX_HEADS, MAX_KEYS, MAX_TAPS
from py_runtime.decoder.mixtures import Mixture
from py_runtime.decoder.rotary import INTERLEAVED, SECTIONS, SEVERAL
from py_runtime.decoder.words import DEEP, FULL, TILED, Words

# Qwen3.5 and Qwen3-Coder; their templates have the tags of the older ones, too.
TAGGED_CALLS = Convention(
    rank=0,
    known_by=("<function=",),
    calls=(Markers("<tool_call>", "</tool_call>", TAGGED),),
    forced="<tool_call>\n",
)


def qwen35_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Make all layers but each fourth delta nets; their value heads lie tiled."""
    layers = values["num_hidden_layers"]
    period = keys.integer("full_attention_interval", 1, 1 << 10, default=4)
    value_heads = keys.integer("ssm.time_step_rank", 1, MAX_HEADS)
    inner = keys.integer("ssm.inner_size", value_heads, MAX_HEADS * MAX_HEADS)
    if inner % value_heads:
        raise keys.fault("ssm.inner_size", f"is {inner}, not whole for {value_heads} heads")
    return {
        "layer_types": [
            FULL if (number + 1) % period == 0 else "linear_attention" for number in range(layers)
        ],
        "linear_conv_kernel_dim": keys.integer("ssm.conv_kernel", 2, MAX_TAPS),
        "linear_num_key_heads": keys.integer("ssm.group_count", 1, MAX_HEADS),
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": keys.integer("ssm.state_size", 1, MAX_KEYS),
        "linear_value_head_dim": inner // value_heads,
        TILED: True,
    }


def seeing_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return which pairs of heads turn by time, line and column, and which layers see images."""
    sections = keys.integers("rope.dimension_sections", SEVERAL, 0, MAX_HEAD_DIM, default=0)
    if any(sections):
        rope[SECTIONS] = sections
    return {}


def seeing_words_3(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the same of Qwen3-VL, whose sections take turns."""
    seeing_words(keys, values, rope)
    rope[INTERLEAVED] = True
    return {DEEP: keys.integer("n_deepstack_layers", 0, values["num_hidden_layers"], default=0)}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="qwen2",
            known_as="Qwen2.5",
            gguf=GgufForm(architecture="qwen2"),
            qkv_bias=True,
        ),
        Family(
            model_type="qwen3",
            known_as="Qwen3",
            gguf=GgufForm(architecture="qwen3"),
            qk_norm=HEADS,
        ),
        Family(
            model_type="qwen3_moe",
            known_as="Qwen3 with experts",
            gguf=GgufForm(architecture="qwen3moe", computed=("expert_count",), words=experts),
            qk_norm=HEADS,
            mixture=Mixture(),
        ),
        Family(
            model_type="qwen2_5_vl_text",
            known_as="the text part of Qwen2.5-VL",
            gguf=GgufForm(architecture="qwen2vl", words=seeing_words),
            qkv_bias=True,
        ),
        Family(
            model_type="qwen3_vl_text",
            known_as="the text part of Qwen3-VL",
            gguf=GgufForm(architecture="qwen3vl", words=seeing_words_3),
            qk_norm=HEADS,
        ),
        Family(
            model_type="qwen3_5_text",
            known_as="the text part of Qwen3.5 (dense)",
            checkpoint=CheckpointForm(
                tensors={"self_attn.g_proj": "self_attn.q_proj"}, norms_from_one=True
            ),
            gguf=GgufForm(
                architecture="qwen35",
                tensors={"post_attention_layernorm": "post_attention_norm"},
                predicts_ahead=True,
                words=qwen35_words,
            ),
            qk_norm=HEADS,
            gated_attention=True,
            mixers={"linear_attention": DELTA_NET},
        ),
    ),
    calls=(TAGGED_CALLS, JSON_IN_TAGS),
    thoughts=(THINK_TAGS,),
)
