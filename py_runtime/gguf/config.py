"""A GGUF file's metadata in the words of a config.json, and its tensors compared with them."""

import re
from typing import Any

from py_runtime.decoder.config import DecoderConfig, expected_shapes
from py_runtime.decoder.families import ACTIVATION, BY_ARCHITECTURE, FAMILIES, Family
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.metadata import Metadata
from py_runtime.gguf.names import ROPE_FACTORS, gguf_name
from py_runtime.gguf.reader import GgufFile

# The largest that a file may claim: beyond them nothing fits a page.
MAX_LAYERS = 512
MAX_HEADS = 1 << 12
MAX_HEAD_DIM = 1 << 12
MAX_WIDTH = 1 << 16
MAX_HIDDEN = 1 << 18
MAX_CONTEXT = 1 << 30
EPSILONS = (1e-12, 1e-1)
THETAS = (2.0, 1e12)
SCALES = (1e-6, 1e6)

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
# What may lie in a file beside the decoder: pictures and sound of some files, tables of old ones.
BESIDE = re.compile(r"(v|mm|a)\..*|blk\.\d+\.attn_rot_embd(\.weight)?|rope_freqs\.weight")


def read_family(file: GgufFile) -> Family:
    """By the architecture; UnsupportedGgufError says what the file is instead."""
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
            f"these are: {', '.join(sorted(BY_ARCHITECTURE))} ({known})",
        )
    return BY_ARCHITECTURE[architecture]


def read_config(file: GgufFile) -> dict[str, Any]:
    """What a config.json would say, every number within sane bounds."""
    family = read_family(file)
    keys = _Keys(file.metadata, family.architecture)
    keys.refuse(NOT_COMPUTED)
    heads = keys.integer("attention.head_count", 1, MAX_HEADS)
    width = keys.integer("embedding_length", 1, MAX_WIDTH)
    head_dim = keys.integer("attention.key_length", 1, MAX_HEAD_DIM, default=max(width // heads, 1))
    for key in ("attention.value_length", "rope.dimension_count"):
        if keys.integer(key, 1, MAX_HEAD_DIM, default=head_dim) != head_dim:
            raise keys.unsupported(key, f"differs from the heads' {head_dim}")
    tensors = file.tensors
    values: dict[str, Any] = {
        "model_type": family.model_type,
        "vocab_size": _vocabulary(file),
        "hidden_size": width,
        "intermediate_size": keys.integer("feed_forward_length", 1, MAX_HIDDEN),
        "num_hidden_layers": keys.integer("block_count", 1, MAX_LAYERS),
        "num_attention_heads": heads,
        "num_key_value_heads": keys.integer("attention.head_count_kv", 1, MAX_HEADS, default=heads),
        "head_dim": head_dim,
        "max_position_embeddings": keys.integer("context_length", 1, MAX_CONTEXT),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon", *EPSILONS),
        "rope_parameters": _rope(keys),
        "attention_bias": not family.qkv_bias and "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in tensors,
        "hidden_act": ACTIVATION,
        "tie_word_embeddings": "output.weight" not in tensors,
    }
    if heads % values["num_key_value_heads"]:
        raise keys.fault("attention.head_count_kv", f"does not divide the {heads} query heads")
    window = keys.integer("attention.sliding_window", 0, MAX_CONTEXT, default=0)
    return values | ({"sliding_window": window} if window else {})


def check_tensors(file: GgufFile, config: DecoderConfig) -> None:
    """That the file has what the decoder needs, in its shapes, and nothing that would be lost."""
    expected = {gguf_name(name): dims for name, dims in expected_shapes(config).items()}
    faults = []
    for name, dims in expected.items():
        if name not in file.tensors:
            faults.append(f"{shown(name)} is missing")
        elif file.tensors[name].info.dims != dims:
            found = list(file.tensors[name].info.dims)
            faults.append(f"{shown(name)} has the shape {found}, not {list(dims)}")
    if faults:
        raise GgufError(f"{file.name}: {listed(faults)}")
    others = [name for name in file.tensors if name not in expected and not BESIDE.fullmatch(name)]
    if others:
        raise UnsupportedGgufError(
            f"{file.name} has tensors that this engine does not compute with: "
            f"{listed(map(shown, others))}",
            "get another model, or another file of this one",
        )
    factors = file.tensors.get(ROPE_FACTORS)
    if factors is not None and factors.info.dims != (config.rotary // 2,):
        raise GgufError(
            f"{file.name}: {shown(ROPE_FACTORS)} has the shape {list(factors.info.dims)}, not "
            f"{[config.rotary // 2]}"
        )


class _Keys:
    """The keys of an architecture: `llama.block_count` is 'block_count' here."""

    def __init__(self, metadata: Metadata, architecture: str) -> None:
        self._metadata = metadata
        self._architecture = architecture

    def __contains__(self, key: str) -> bool:
        return self._whole(key) in self._metadata

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        whole = self._whole(key)
        if default is not None and whole not in self._metadata:
            return default
        if self._metadata.is_array(whole):
            raise self.unsupported(key, "differs from layer to layer")
        return self._metadata.integer(whole, least, most)

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        whole = self._whole(key)
        if default is not None and whole not in self._metadata:
            return default
        return self._metadata.number(whole, least, most)

    def text(self, key: str, default: str) -> str:
        whole = self._whole(key)
        return self._metadata.text(whole) if whole in self._metadata else default

    def refuse(self, keys: dict[str, str]) -> None:
        """Zero and false say that a file does without."""
        for key, what in keys.items():
            value = self._metadata.values.get(self._whole(key))
            if value is not None and (value.is_array or value.item != 0):
                raise self.unsupported(key, f"asks for {what}")

    def fault(self, key: str, text: str) -> GgufError:
        return self._metadata.fault(self._whole(key), text)

    def unsupported(self, key: str, text: str) -> UnsupportedGgufError:
        return UnsupportedGgufError(
            f"{self._metadata.file}: its metadata {shown(self._whole(key))} {text}, which this "
            "engine does not compute",
            "get another model",
        )

    def _whole(self, key: str) -> str:
        return f"{self._architecture}.{key}"


def _vocabulary(file: GgufFile) -> int:
    """A token each row of the embedding; converters pad the shorter list."""
    tokens = len(file.metadata.texts("tokenizer.ggml.tokens"))
    embedding = file.tensors.get("token_embd.weight")
    rows = tokens if embedding is None else embedding.info.dims[0]
    if not tokens or tokens != rows:
        raise GgufError(
            f"{file.name} has {tokens} tokens, but embeddings of {rows}: they must be as many"
        )
    return tokens


def _rope(keys: _Keys) -> dict[str, Any]:
    """Every key that llama.cpp's converters write, under the name that transformers has for it."""
    rope: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": keys.number("rope.freq_base", *THETAS, default=10000.0),
    }
    kind = keys.text("rope.scaling.type", "none")
    if "rope.scaling.attn_factor" in keys:
        rope["attn_factor"] = keys.number("rope.scaling.attn_factor", *SCALES)
    if kind == "none":
        return rope
    if kind not in ("linear", "yarn"):
        raise keys.unsupported("rope.scaling.type", f"is {shown(kind)}")
    rope |= {"rope_type": kind, "factor": keys.number("rope.scaling.factor", *SCALES)}
    if kind == "yarn":
        rope |= _yarn(keys)
    return rope


def _yarn(keys: _Keys) -> dict[str, Any]:
    original = "rope.scaling.original_context_length"
    trained = keys.integer("context_length", 1, MAX_CONTEXT)
    yarn: dict[str, Any] = {
        "original_max_position_embeddings": keys.integer(original, 1, MAX_CONTEXT, default=trained)
    }
    for key, name in (
        ("yarn_attn_factor", "attention_factor"),
        ("yarn_beta_fast", "beta_fast"),
        ("yarn_beta_slow", "beta_slow"),
        ("yarn_log_multiplier", "mscale_all_dim"),
    ):
        if f"rope.scaling.{key}" in keys:
            yarn[name] = keys.number(f"rope.scaling.{key}", *SCALES)
    if "mscale_all_dim" in yarn:
        yarn["mscale"] = 1.0  # as llama.cpp takes it
    if "rope.scaling.yarn_ext_factor" in keys:
        extrapolation = keys.number("rope.scaling.yarn_ext_factor", -1.0, SCALES[1])
        if extrapolation >= 0:  # less means that it is not set
            yarn["extrapolation_factor"] = extrapolation
    return yarn
