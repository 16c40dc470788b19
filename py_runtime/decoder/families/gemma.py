"""Gemma, whose embeddings are multiplied by the root of the width, and whose gates are gelu.

Checkpoints before Gemma 4 hold what norms have beyond 1. Gemma 2 added norms around attention and
MLP, Gemma 3 rotary tables for sliding layers alone. Gemma 4 shares keys and values between layers,
and has embeddings for each layer.
"""

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import AROUND, GELU, HEADS
from py_runtime.decoder.conventions import GEMMA, Convention, Markers, Thoughts
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, layer_types, window
from py_runtime.decoder.limits import MAX_HEAD_DIM, MAX_HIDDEN, MAX_PER_LAYER, SCALES, THETAS
from py_runtime.decoder.words import FULL, SLIDING, Words

SCORE_CAP, LOGIT_CAP = "attn_logit_softcapping", "final_logit_softcapping"  # in both formats
CAPS = {SCORE_CAP: 50.0, LOGIT_CAP: 30.0}
# The models of 27 B parameters have scores with a scale of their own; files do not say so.
GEMMA2_27B_LAYERS, GEMMA3_27B_LAYERS = 46, 62

QUOTE = '<|"|>'
CALLS = Convention(
    rank=2,
    known_by=("<|tool_call>",),
    calls=(Markers("<|tool_call>", "<tool_call|>", GEMMA),),
    forced="<|tool_call>",
    inner=(QUOTE,),
)
THOUGHTS = Thoughts(
    rank=2, opener="<|channel>thought\n", closer="<channel|>", known_by="<channel|>"
)


def gemma2_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return caps, the window, and that every other layer slides."""
    caps = {key: keys.number(key, *SCALES, default=usual) for key, usual in CAPS.items()}
    return {
        **caps,
        "query_pre_attn_scalar": _query_scalar(values, GEMMA2_27B_LAYERS),
        "sliding_window": window(keys, 4096),
        "layer_types": layer_types(keys, values, 2),
        "hidden_activation": values["hidden_act"],
    }


def gemma3_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the window, of five layers in six, and the rotary parameters of both kinds."""
    return {
        "query_pre_attn_scalar": _query_scalar(values, GEMMA3_27B_LAYERS),
        "sliding_window": window(keys, 1024),
        "layer_types": layer_types(keys, values, 6),
        "rope_parameters": _two_ropes(keys, rope),
        "hidden_activation": values["hidden_act"],
        LOGIT_CAP: None,
    }


def gemma4_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return how layers differ, in the widths of heads and MLPs, windows and rotary positions.

    Heads of full layers have a width of their own, and factors in a tensor stop some of their
    rotary pairs. The last layers share keys and values.
    """
    layers, hidden, width = (
        values[name] for name in ("num_hidden_layers", "intermediate_size", "head_dim")
    )
    local = {
        keys.integer(f"attention.{part}_length_swa", 2, MAX_HEAD_DIM, default=width)
        for part in ("key", "value")
    }
    if len(local) > 1:
        raise keys.unsupported("attention.value_length_swa", "differs from the keys' width")
    sharing = keys.integer("attention.shared_kv_layers", 0, layers - 1, default=0)
    hiddens = keys.integers("feed_forward_length", layers, 1, MAX_HIDDEN)
    doubled = hiddens[-1] == 2 * hidden
    widths = [hidden] * (layers - sharing) + [hidden * (1 + doubled)] * sharing
    if hiddens != widths:
        raise keys.unsupported("feed_forward_length", "differs from layer to layer")
    ropes = _two_ropes(keys, rope)
    head_dim = local.pop()
    turned = keys.integer("rope.dimension_count_swa", 2, MAX_HEAD_DIM, default=head_dim)
    if turned != head_dim:
        raise keys.unsupported("rope.dimension_count_swa", f"differs from the heads' {head_dim}")
    return {
        "head_dim": head_dim,
        "global_head_dim": width,
        "num_kv_shared_layers": sharing,
        "use_double_wide_mlp": doubled,
        "vocab_size_per_layer_input": values["vocab_size"],
        "hidden_size_per_layer_input": keys.integer(
            "embedding_length_per_layer_input", 0, MAX_PER_LAYER, default=0
        ),
        "sliding_window": window(keys, 512),
        "layer_types": layer_types(keys, values, 5),
        "rope_parameters": ropes,
        "hidden_activation": values["hidden_act"],
        LOGIT_CAP: keys.number(LOGIT_CAP, *SCALES, default=CAPS[LOGIT_CAP]),
    }


def _query_scalar(values: Words, layers_of_27b: int) -> int:
    if values["num_hidden_layers"] == layers_of_27b:
        return int(values["hidden_size"] // values["num_attention_heads"])
    return int(values["head_dim"])


def _two_ropes(keys: GgufKeys, rope: Words) -> Words:
    """Return the rotary parameters of full and of sliding layers."""
    theta = keys.number("rope.freq_base_swa", *THETAS, default=10000.0)
    rope["rope_theta"] = keys.number("rope.freq_base", *THETAS, default=1000000.0)
    return {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": theta}}


def gemma4_checkpoint_words(whole: Words) -> Words:
    """Return the one width that heads of full layers have; transformers has it layer by layer."""
    layers = whole.get("per_layer_config")
    if not layers:
        return {}
    widths = {layer.get("head_dim", whole["head_dim"]) for layer in layers.values()}
    full = [str(at) for at, kind in enumerate(whole["layer_types"]) if kind == FULL]
    if len(widths) > 1 or {*map(str, layers)} != {*full}:
        raise ModelError("its layers have heads of more than two widths", "get another model")
    return {"global_head_dim": widths.pop()}


FROM_ONE = CheckpointForm(norms_from_one=True)

GROUP = FamilyGroup(
    families=(
        Family(
            model_type="gemma",
            known_as="Gemma",
            checkpoint=FROM_ONE,
            gguf=GgufForm(architecture="gemma"),
            activation=GELU,
            root_of_width=True,
        ),
        Family(
            model_type="gemma2",
            known_as="Gemma 2",
            checkpoint=FROM_ONE,
            gguf=GgufForm(architecture="gemma2", computed=tuple(CAPS), words=gemma2_words),
            activation=GELU,
            norms=AROUND,
            root_of_width=True,
        ),
        Family(
            model_type="gemma3_text",
            known_as="Gemma 3 (text)",
            checkpoint=FROM_ONE,
            gguf=GgufForm(architecture="gemma3", words=gemma3_words),
            qk_norm=HEADS,
            activation=GELU,
            norms=AROUND,
            root_of_width=True,
            sees_whole=True,
        ),
        Family(
            model_type="gemma4_text",
            known_as="the text part of Gemma 4 (E2B, E4B)",
            checkpoint=CheckpointForm(words_after=gemma4_checkpoint_words),
            gguf=GgufForm(
                architecture="gemma4",
                layers_differ=True,
                computed=(LOGIT_CAP,),
                words=gemma4_words,
            ),
            qk_norm=HEADS,
            value_norm=True,
            unscaled_scores=True,
            activation=GELU,
            norms=AROUND,
            root_of_width=True,
            layer_scalars=True,
        ),
    ),
    calls=(CALLS,),
    thoughts=(THOUGHTS,),
)
