"""A family of text encoders: what sets its config.json and its tensors apart from BERT's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.words import Words

# The engine's names of a model's tensors; layers have theirs behind `layers.N.`.
WORDS, POSITIONS, TYPES = (
    f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")
)
EMBEDDING_NORM = "embeddings.LayerNorm"
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
ATTENTION_NORM, MLP_NORM = "post_attention_layernorm", "post_mlp_layernorm"
BEFORE_ATTENTION, BEFORE_MLP, LAST_NORM = "input_layernorm", "pre_mlp_layernorm", "norm"
QUERY_NORM, KEY_NORM = "self_attn.q_norm", "self_attn.k_norm"
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))
# Of a reranker: from a pair's first hidden state to its score, with a tanh in between.
SCORE_HIDDEN, SCORE = "score.hidden", "score.out"
DENSE = "dense.{number}"  # products behind the pooling
AFTER, BEFORE, AROUND = "after", "before", "around"  # places of norms: of attention, and of the MLP

# Sizes under BERT's names in config.json.
SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "max_position_embeddings"),
)


def no_words(values: Words) -> Words:
    """Return nothing beyond what a config.json says."""
    return {}


def no_words_from_keys(keys: GgufKeys) -> Words:
    """Return nothing beyond what all files say."""
    return {}


@dataclass(frozen=True)
class EncoderFamily:
    """A family: what its checkpoints call what BERT's name otherwise."""

    model_type: str
    known_as: str
    layers: str  # what stands before a layer's number
    parts: Mapping[str, str] = field(default_factory=dict)  # of a layer, by the engine's names
    keys: Mapping[str, str] = field(default_factory=dict)  # of config.json, by BERT's
    embedding_norm: str = EMBEDDING_NORM
    # What checkpoints call tensors of the whole model.
    whole: Mapping[str, str] = field(default_factory=dict)
    fused: str | None = None  # a layer's rows of queries, keys and values in one matrix
    fused_mlp: str | None = None  # those of gate and up
    has_types: bool = True
    is_turned: bool = False  # by rotary positions, in place of learned ones
    is_gated: bool = False  # an MLP with a gate
    has_biases: bool = True  # in products
    skips_padding: bool = False  # positions begin behind the padding token's number
    act: str = "gelu"  # where config.json does not say
    # What checkpoints call the two products of a score, without what stands before the model.
    scores: tuple[str, str] | None = None
    pair_gap: int = 1  # ends of a text between the two of a pair
    norms: str = AFTER
    first_is_bare: bool = False  # no norm before the first layer's attention
    has_embedding_norm: bool = True
    is_rms: bool = False  # norms
    norm_biases: bool = True
    norms_from_one: bool = False  # checkpoints hold what norms have beyond 1
    qk_norms: bool = False
    # What config.py needs in addition: of a config.json, and of a GGUF file's keys.
    words: Callable[[Words], Words] = no_words
    gguf_words: Callable[[GgufKeys], Words] = no_words_from_keys
    gguf_parts: Mapping[str, str] = field(default_factory=dict)  # names in GGUF files

    def key(self, name: str, values: Mapping[str, object]) -> str:
        """Return what a config.json calls what BERT's has under this name."""
        return name if name in values else self.keys.get(name, name)

    def checkpoint_name(self, name: str) -> str:
        """Return what checkpoints call a tensor, without what stands before the whole model."""
        owner = name.rpartition(".")[0]
        if self.scores and owner in (SCORE_HIDDEN, SCORE):
            own = self.scores[owner == SCORE]
            return name.replace(owner, own)
        if owner in self.whole:
            return name.replace(owner, self.whole[owner])
        if not name.startswith("layers."):
            return name.replace(EMBEDDING_NORM, self.embedding_norm)
        _, number, part = name.split(".", 2)
        owner, _, ending = part.rpartition(".")
        return f"{self.layers}.{number}.{self.parts.get(owner, owner)}.{ending}"

    def norms_of(self, number: int) -> tuple[str, ...]:
        """Return the norms of a layer, but for those of queries and keys."""
        first = () if self.first_is_bare and number == 0 else (BEFORE_ATTENTION,)
        return {
            AFTER: (ATTENTION_NORM, MLP_NORM),
            BEFORE: (*first, BEFORE_MLP),
            AROUND: (*first, ATTENTION_NORM, BEFORE_MLP, MLP_NORM),
        }[self.norms]
