"""The sizes of a text encoder, as a config.json gives them, each within sane bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_LAYERS,
    MAX_WIDTH,
    THETAS,
)
from py_runtime.decoder.words import FULL, SLIDING
from py_runtime.encoder.families import FAMILIES, family_of
from py_runtime.encoder.family import SIZES, EncoderFamily

GELU, GELU_TANH, SILU, RELU = "gelu", "gelu_tanh", "silu", "relu"
# By the names of transformers; some are of the same function.
ACTIVATIONS = {
    "gelu": GELU,
    "gelu_new": GELU_TANH,
    "gelu_pytorch_tanh": GELU_TANH,
    "silu": SILU,
    "swish": SILU,
    "swiglu": SILU,
    "relu": RELU,
}
# Keys that ask for something else, unless they are false or zero.
NOT_COMPUTED = (
    *("is_decoder", "prenorm", "use_rms_norm", "rotary_emb_interleaved", "rotary_emb_scale_base"),
    *("parallel_block", "moe_every_n_layers", "num_experts"),
)
EPSILONS = (1e-13, 1e-1)  # GGUF files round 1e-12 down
MAX_VOCABULARY, MAX_TYPES = 1 << 22, 1 << 10
KINDS = {FULL, SLIDING}
RERANKER = "ForSequenceClassification"
MOST_TOKENS = 1 << 13  # of a text: its activations lie on the device as a whole
ROWS_TOGETHER = 1 << 12  # tokens of several texts that are encoded at once
MOST_TEXTS = 64  # at once
MOST = dict(
    zip(
        SIZES,
        (MAX_VOCABULARY, MAX_WIDTH, MAX_HIDDEN, MAX_LAYERS, MAX_HEADS, MAX_CONTEXT),
        strict=True,
    )
)


@dataclass(frozen=True)
class EncoderConfig:
    """The sizes of an encoder, and its switches."""

    family: EncoderFamily
    vocabulary: int
    width: int
    hidden: int
    layers: int
    heads: int
    positions: int  # rows of the table of positions, or all that rotary positions are good for
    types: int  # of tokens; 0: they have none
    first_position: int
    activation: str
    eps: float
    theta: float
    scores: bool  # it reads pairs of texts, and gives each a number
    head_dim: int
    kv_heads: int
    reaches: tuple[int | None, ...] = ()  # of layers, to both sides; None, or no item: all is seen
    local_theta: float = 0.0  # of layers that do not see all
    embedding_scale: float = 1.0
    score_scale: float | None = None
    dense: tuple[int, ...] = ()  # rows of products behind the pooling

    def reach(self, number: int) -> int | None:
        """Return how many tokens to both sides a layer sees; None: all of its text."""
        return self.reaches[number] if self.reaches else None

    @property
    def vector(self) -> int:
        """Return the columns of a text's vector."""
        return (self.width, *self.dense)[-1]

    @property
    def context(self) -> int:
        """Return the most tokens of a text."""
        return min(self.positions - self.first_position, MOST_TOKENS)

    @property
    def texts(self) -> int:
        """Return how many texts are encoded at once, all of them as long as can be."""
        return max(1, min(ROWS_TOGETHER // self.context, MOST_TEXTS))


def is_encoder(values: Mapping[str, Any]) -> bool:
    """Return whether this config.json is of a text encoder that can be run."""
    return family_of(dict(values)) is not None


def encoder_config(values: Mapping[str, Any]) -> EncoderConfig:
    """Return the sizes that a config.json gives; ModelError names what is wrong."""
    values = dict(values)
    family = family_of(values)
    if family is None:
        known = ", ".join(f"{one.model_type} ({one.known_as})" for one in FAMILIES)
        raise ModelError(
            f"config.json: model_type {short(values.get('model_type'))} is none of the text "
            f"encoders that are supported: {known}",
            "get another model",
        )
    values |= family.words(values)
    sizes = {key: _integer(values, family.key(key, values), most) for key, most in MOST.items()}
    width, heads = sizes["hidden_size"], sizes["num_attention_heads"]
    head_dim = width // heads
    if values.get("head_dim") is not None:
        head_dim = _integer(values, "head_dim", MAX_HEAD_DIM)
    elif width % heads:
        raise _fault(f"{heads} heads do not share {width} columns")
    if family.is_turned and head_dim % 2:
        raise _fault(f"heads of {head_dim} columns cannot turn")
    kv_heads = heads
    if values.get("num_key_value_heads") is not None:
        kv_heads = _integer(values, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise _fault(f"{heads} heads do not share {kv_heads} keys evenly")
    kind = values.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise _fault(f"position_embedding_type is {short(kind)}, which is not supported")
    for key in NOT_COMPUTED:
        if values.get(key):
            raise _fault(f"{key} is {short(values[key])}, which is not supported")
    first = _integer(values, "pad_token_id", MAX_VOCABULARY, 0) + 1 if family.skips_padding else 0
    # Beyond those it was trained with, Nomic's frequencies would depend on a text's length.
    trained = values.get("max_trained_positions") or sizes["max_position_embeddings"]
    positions = min(sizes["max_position_embeddings"], _checked(trained, "max_trained_positions"))
    if first >= positions:
        raise _fault(f"positions begin at {first}, but there are {positions}")
    return EncoderConfig(
        family=family,
        vocabulary=sizes["vocab_size"],
        width=width,
        hidden=sizes["intermediate_size"],
        layers=sizes["num_hidden_layers"],
        heads=heads,
        positions=positions,
        types=_integer(values, "type_vocab_size", MAX_TYPES, 0) if family.has_types else 0,
        first_position=first,
        activation=_activation(values, family),
        eps=_number(values, family.key("layer_norm_eps", values), EPSILONS, 1e-12),
        theta=_theta(values, "rope_parameters"),
        scores=_gives_scores(values, family),
        head_dim=head_dim,
        kv_heads=kv_heads,
        reaches=_reaches(values, sizes["num_hidden_layers"]),
        local_theta=_theta(values, "local_rope_parameters"),
        embedding_scale=values.get("embedding_scale", 1.0),
        score_scale=values.get("score_scale"),
    )


def _reaches(values: Mapping[str, Any], layers: int) -> tuple[int | None, ...]:
    """Return how far each layer sees, where some see a window."""
    types = values.get("layer_types")
    if "reach" not in values:
        return ()
    if not isinstance(types, list) or len(types) < layers or not {*map(str, types)} <= KINDS:
        raise _fault(f"layer_types is {short(types)}, which is not supported")
    reach = _integer(values, "reach", MAX_CONTEXT)
    return tuple(reach if kind == SLIDING else None for kind in types[:layers])


def _gives_scores(values: Mapping[str, Any], family: EncoderFamily) -> bool:
    """Tell whether the model is a reranker; ModelError for one that sorts texts into classes."""
    named = values.get("architectures")
    names = named if isinstance(named, list) else []
    if not any(isinstance(name, str) and name.endswith(RERANKER) for name in names):
        return False
    labels = values.get("id2label")
    count = len(labels) if isinstance(labels, dict) else values.get("num_labels", 2)
    if count != 1 or family.scores is None:
        raise _fault(f"architectures has {short(names[0])}, which gives no score of a pair")
    return True


def _activation(values: Mapping[str, Any], family: EncoderFamily) -> str:
    key = family.key("hidden_act", values)
    found = values.get(key, family.act)
    if not isinstance(found, str) or found not in ACTIVATIONS:
        raise _fault(f"{key} is {short(found)}, which is not supported")
    return ACTIVATIONS[found]


def _theta(values: Mapping[str, Any], key: str) -> float:
    """Return the base of rotary frequencies, which is in one of two places."""
    rope = values.get(key)
    if isinstance(rope, dict):
        if rope.get("rope_type", "default") != "default":
            raise _fault(f"rope_type is {short(rope['rope_type'])}, which is not supported")
        return _number(rope, "rope_theta", THETAS, 1000.0)
    return _number(values, "rotary_emb_base", THETAS, 1000.0)


def _integer(values: Mapping[str, Any], key: str, most: int, least: int = 1) -> int:
    return _checked(values.get(key), key, most, least)


def _checked(found: Any, key: str, most: int = MAX_CONTEXT, least: int = 1) -> int:
    if type(found) is not int or not least <= found <= most:
        raise _fault(f"{key} is {short(found)}, not an integer from {least} to {most}")
    return found


def _number(
    values: Mapping[str, Any], key: str, bounds: tuple[float, float], default: float
) -> float:
    found = values.get(key, default)
    if type(found) not in (int, float) or not bounds[0] <= found <= bounds[1]:
        raise _fault(f"{key} is {short(found)}, not a number from {bounds[0]} to {bounds[1]}")
    return float(found)


def _fault(text: str) -> ModelError:
    return ModelError(f"config.json: {text}", "get another copy of the model, or another model")
