"""The families of text encoders: where their config.json and their tensors differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The engine's names of a model's tensors; layers have theirs behind `layers.N.`.
WORDS, POSITIONS, TYPES = (
    f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")
)
EMBEDDING_NORM = "embeddings.LayerNorm"
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
ATTENTION_NORM, MLP_NORM = "post_attention_layernorm", "post_mlp_layernorm"
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))
# Of a reranker: from a pair's first hidden state to its score, with a tanh in between.
SCORE_HIDDEN, SCORE = "score.hidden", "score.out"

# Sizes under BERT's names in config.json.
SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "max_position_embeddings"),
)


@dataclass(frozen=True)
class EncoderFamily:
    """A family: what its checkpoints call what BERT's name otherwise."""

    model_type: str
    known_as: str
    layers: str  # what stands before a layer's number
    parts: Mapping[str, str] = field(default_factory=dict)  # of a layer, by the engine's names
    keys: Mapping[str, str] = field(default_factory=dict)  # of config.json, by BERT's
    embedding_norm: str = EMBEDDING_NORM
    fused: str | None = None  # a layer's rows of queries, keys and values in one matrix
    has_types: bool = True
    is_turned: bool = False  # by rotary positions, in place of learned ones
    is_gated: bool = False  # an MLP with a gate
    has_biases: bool = True  # in products
    skips_padding: bool = False  # positions begin behind the padding token's number
    act: str = "gelu"  # where config.json does not say
    # What checkpoints call the two products of a score, without what stands before the model.
    scores: tuple[str, str] | None = None
    pair_gap: int = 1  # ends of a text between the two of a pair

    def key(self, name: str, values: Mapping[str, object]) -> str:
        """Return what a config.json calls what BERT's has under this name."""
        return name if name in values else self.keys.get(name, name)

    def checkpoint_name(self, name: str) -> str:
        """Return what checkpoints call a tensor, without what stands before the whole model."""
        owner = name.rpartition(".")[0]
        if self.scores and owner in (SCORE_HIDDEN, SCORE):
            own = self.scores[owner == SCORE]
            return name.replace(owner, own)
        if not name.startswith("layers."):
            return name.replace(EMBEDDING_NORM, self.embedding_norm)
        _, number, part = name.split(".", 2)
        owner, _, ending = part.rpartition(".")
        return f"{self.layers}.{number}.{self.parts.get(owner, owner)}.{ending}"


_BERT_PARTS = {
    QUERIES: "attention.self.query",
    KEYS: "attention.self.key",
    VALUES: "attention.self.value",
    MIXED: "attention.output.dense",
    ATTENTION_NORM: "attention.output.LayerNorm",
    UP: "intermediate.dense",
    DOWN: "output.dense",
    MLP_NORM: "output.LayerNorm",
}
_DISTILBERT_PARTS = {
    QUERIES: "attention.q_lin",
    KEYS: "attention.k_lin",
    VALUES: "attention.v_lin",
    MIXED: "attention.out_lin",
    ATTENTION_NORM: "sa_layer_norm",
    UP: "ffn.lin1",
    DOWN: "ffn.lin2",
    MLP_NORM: "output_layer_norm",
}
_DISTILBERT_KEYS = {
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "hidden_act": "activation",
}
# As published; transformers reads and writes it with BERT's keys, too.
_NOMIC_PARTS = {
    **{part: f"attn.Wqkv, {part}" for part in (QUERIES, KEYS, VALUES)},
    MIXED: "attn.out_proj",
    ATTENTION_NORM: "norm1",
    UP: "mlp.fc11",
    GATE: "mlp.fc12",
    DOWN: "mlp.fc2",
    MLP_NORM: "norm2",
}
_NOMIC_KEYS = {
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "layer_norm_eps": "layer_norm_epsilon",
    "hidden_act": "activation_function",
}
FAMILIES = (
    EncoderFamily(
        "bert",
        "BERT, MiniLM, BGE, E5, GTE",
        "encoder.layer",
        _BERT_PARTS,
        scores=("pooler.dense", "classifier"),
    ),
    EncoderFamily(
        "roberta",
        "RoBERTa",
        "encoder.layer",
        _BERT_PARTS,
        skips_padding=True,
        scores=("classifier.dense", "classifier.out_proj"),
        pair_gap=2,
    ),
    EncoderFamily(
        "distilbert",
        "DistilBERT",
        "transformer.layer",
        _DISTILBERT_PARTS,
        _DISTILBERT_KEYS,
        has_types=False,
    ),
    EncoderFamily(
        "nomic_bert",
        "Nomic Embed",
        "encoder.layers",
        _NOMIC_PARTS,
        _NOMIC_KEYS,
        embedding_norm="emb_ln",
        fused="attn.Wqkv",
        is_turned=True,
        is_gated=True,
        has_biases=False,
        act="silu",
    ),
)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
BY_ARCHITECTURE = {"bert": BY_MODEL_TYPE["bert"], "nomic-bert": BY_MODEL_TYPE["nomic_bert"]}
