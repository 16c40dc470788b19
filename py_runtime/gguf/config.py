"""A GGUF file's metadata in the words of a config.json, and its tensors compared with them.

What depends on the architecture is in the file of its family, in py_runtime/decoder/families.
"""

import re
from collections.abc import Mapping

from py_runtime.base.shapes import Dims
from py_runtime.decoder.config import GELU, DecoderConfig
from py_runtime.decoder.families import BY_ARCHITECTURE, FAMILIES
from py_runtime.decoder.family import Family
from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_LAYERS,
    MAX_WIDTH,
)
from py_runtime.decoder.tensors import expected_shapes
from py_runtime.decoder.words import Words
from py_runtime.encoder.families import BY_ARCHITECTURE as ENCODERS
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.names import ROPE_FACTORS, gguf_names
from py_runtime.gguf.reader import GgufFile
from py_runtime.gguf.rope_keys import read_rope
from py_runtime.gguf.tokenizer import token_ids

EPSILONS = (1e-12, 1e-1)

OTHER_KINDS = {
    "adapter": "an adapter for a model, not a model",
    "imatrix": "an importance matrix, not a model",
    "mmproj": "the part of a model that sees pictures, not the model itself",
}
# Keys of other models; where a file has one, what the decoder computes would be wrong.
NOT_COMPUTED = {
    "expert_count": "mixtures of experts",
    "attn_logit_softcapping": "soft caps on scores",
    "final_logit_softcapping": "soft caps on logits",
    "attention.scale": "scores with a scale of their own",
    "attention.clamp_kqv": "clamped queries and keys",
    "attention.max_alibi_bias": "biases by distance",
    "embedding_scale": "scaled embeddings",
    "residual_scale": "scaled residuals",
    "logit_scale": "scaled logits",
    "use_parallel_residual": "parallel residuals",
}
# Tensors that a file may have beside the decoder's: of pictures and sound, and old rope tables.
BESIDE = re.compile(r"(v|mm|a)\..*|blk\.\d+\.attn_rot_embd(\.weight)?|rope_\w+\.weight")


def read_family(file: GgufFile) -> Family:
    """Return the family of the architecture; UnsupportedGgufError says what the file is instead."""
    metadata = file.metadata
    general_type = "general.type"
    kind = metadata.text(general_type) if general_type in metadata else "model"
    architecture = metadata.text("general.architecture")
    if architecture == "clip":
        kind = "mmproj"
    if kind in OTHER_KINDS:
        raise UnsupportedGgufError(
            f"{file.name} is {OTHER_KINDS[kind]}", "give the file that has the model's weights"
        )
    if architecture not in BY_ARCHITECTURE:
        known = ", ".join(family.known_as for family in FAMILIES)
        raise UnsupportedGgufError(
            f"{file.name}: the architecture {shown(architecture)} is not supported",
            f"these are: {', '.join(sorted((*BY_ARCHITECTURE, *ENCODERS)))} ({known})",
        )
    return BY_ARCHITECTURE[architecture]


def read_config(file: GgufFile) -> Words:
    """Return what a config.json would say, every number within sane bounds."""
    family = read_family(file)
    keys = Keys(file.metadata, file.metadata.text("general.architecture"))
    computed = family.gguf.computed
    keys.refuse({key: what for key, what in NOT_COMPUTED.items() if key not in computed})
    if not keys.flag("attention.causal", True):
        raise keys.unsupported("attention.causal", "says that tokens see those after them, too")
    heads = keys.integer("attention.head_count", 1, MAX_HEADS)
    width = keys.integer("embedding_length", 1, MAX_WIDTH)
    head_dim = keys.integer("attention.key_length", 1, MAX_HEAD_DIM, default=max(width // heads, 1))
    turned = keys.integer("rope.dimension_count", 1, MAX_HEAD_DIM, default=head_dim)
    if keys.integer("attention.value_length", 1, MAX_HEAD_DIM, default=head_dim) != head_dim:
        raise keys.unsupported("attention.value_length", f"differs from the heads' {head_dim}")
    if turned != head_dim and (family.gguf.pairs_side_by_side or turned > head_dim):
        raise keys.unsupported("rope.dimension_count", f"differs from the heads' {head_dim}")
    tensors = file.tensors
    layers = keys.integer("block_count", 1, MAX_LAYERS)
    layers -= heads_of(file)
    kv_heads = _kv_heads(keys, family, layers, heads)
    values: Words = {
        "model_type": family.model_type,
        "vocab_size": _vocabulary(file),
        "hidden_size": width,
        "intermediate_size": _hidden(keys, family, layers),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": keys.integer("context_length", 1, MAX_CONTEXT),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon", *EPSILONS),
        "attention_bias": not family.qkv_bias and "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in tensors,
        "hidden_act": "gelu_pytorch_tanh" if family.activation == GELU else "silu",
        "mamba_rms_norm": "blk.0.ssm_norm.weight" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
        **token_ids(file.metadata),
    }
    if heads % kv_heads:
        raise keys.fault("attention.head_count_kv", f"does not divide the {heads} query heads")
    values |= family_words(keys, family, values)
    if turned != head_dim:
        values["rope_parameters"]["partial_rotary_factor"] = turned / head_dim
    return values


def heads_of(file: GgufFile) -> int:
    """Return how many of its last layers are those of heads that foresee tokens."""
    if not read_family(file).gguf.predicts_ahead:
        return 0
    keys = Keys(file.metadata, file.metadata.text("general.architecture"))
    layers = keys.integer("block_count", 1, MAX_LAYERS)
    return keys.integer("nextn_predict_layers", 0, layers - 1, default=0)


def family_words(keys: Keys, family: Family, values: Words) -> Words:
    """Return all that depends on the family; `values` has the sizes."""
    rope = read_rope(keys, family.gguf.has_factor_tensors)
    return {"rope_parameters": rope} | family.gguf.words(keys, values, rope)


def _kv_heads(keys: Keys, family: Family, layers: int, heads: int) -> int:
    """Return the number that all layers have, but for those without attention."""
    key = "attention.head_count_kv"
    least = 0 if family.mixers or family.gguf.layers_differ else 1
    found = keys.integers(key, layers, least, MAX_HEADS, heads)
    numbers = {number for number in found if number}
    if len(numbers) > 1:
        raise keys.unsupported(key, "differs from layer to layer")
    return numbers.pop() if numbers else heads


def _hidden(keys: Keys, family: Family, layers: int) -> int:
    """Return the width of an MLP: that of the first layers, where layers differ."""
    key = "feed_forward_length"
    if family.one_part:
        widths = {width for width in keys.integers(key, layers, 0, MAX_HIDDEN) if width}
        if len(widths) != 1:
            raise keys.unsupported(key, "differs from layer to layer")
        return widths.pop()
    if not family.gguf.layers_differ:
        return keys.integer(key, 1, MAX_HIDDEN)
    return keys.integers(key, layers, 1, MAX_HIDDEN)[0]


def check_tensors(file: GgufFile, config: DecoderConfig) -> None:
    """Check that the file has all that the decoder needs, in its shapes, and nothing more."""
    expected = _expected(config)
    faults = tensor_faults(file, expected)
    if faults:
        raise GgufError(f"{file.name}: {listed(faults)}")
    others = [name for name in file.tensors if name not in expected and not BESIDE.fullmatch(name)]
    if others:
        raise UnsupportedGgufError(
            f"{file.name} has tensors that this engine does not compute with: "
            f"{listed(map(shown, others))}",
            "get another model, or another file of this one",
        )
    for name in ROPE_FACTORS:
        factors = file.tensors.get(name)
        pairs = config.table_columns("") // 2
        if factors is not None and factors.info.dims != (pairs,):
            raise GgufError(
                f"{file.name}: {shown(name)} has the shape {list(factors.info.dims)}, not [{pairs}]"
            )


def _expected(config: DecoderConfig) -> dict[str, Dims]:
    """Return the dims of all tensors that the decoder needs, by their names in the file."""
    names = gguf_names(config)
    return {names[name]: dims for name, dims in expected_shapes(config).items()}


def tensor_faults(file: GgufFile, expected: Mapping[str, Dims]) -> list[str]:
    """Return what is missing, or has another shape."""
    faults = []
    for name, dims in expected.items():
        if name not in file.tensors:
            faults.append(f"{shown(name)} is missing")
        elif file.tensors[name].info.dims != dims:
            found = list(file.tensors[name].info.dims)
            faults.append(f"{shown(name)} has the shape {found}, not {list(dims)}")
    return faults


def _vocabulary(file: GgufFile) -> int:
    """Return how many tokens there are: as many as rows of the embedding, for converters pad."""
    tokens = len(file.metadata.texts("tokenizer.ggml.tokens"))
    embedding = file.tensors.get("token_embd.weight")
    rows = tokens if embedding is None else embedding.info.dims[0]
    if not tokens or tokens != rows:
        raise GgufError(
            f"{file.name} has {tokens} tokens, but embeddings of {rows}: they must be as many"
        )
    return tokens
