"""The families of text encoders."""

from dataclasses import replace

from py_runtime.decoder.words import Words
from py_runtime.encoder import embedding_gemma, modern_bert
from py_runtime.encoder.family import (
    ATTENTION_NORM,
    DOWN,
    GATE,
    KEYS,
    MIXED,
    MLP_NORM,
    QUERIES,
    UP,
    VALUES,
    EncoderFamily,
)

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
ROBERTA = EncoderFamily(
    "roberta",
    "RoBERTa",
    "encoder.layer",
    _BERT_PARTS,
    skips_padding=True,
    scores=("classifier.dense", "classifier.out_proj"),
    pair_gap=2,
)
FAMILIES = (
    EncoderFamily(
        "bert",
        "BERT, MiniLM, BGE, E5, GTE",
        "encoder.layer",
        _BERT_PARTS,
        scores=("pooler.dense", "classifier"),
    ),
    ROBERTA,
    replace(ROBERTA, model_type="xlm-roberta", known_as="XLM-RoBERTa, BGE M3, multilingual E5"),
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
    modern_bert.FAMILY,
    embedding_gemma.FAMILY,
)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
BY_ARCHITECTURE = {
    "bert": BY_MODEL_TYPE["bert"],
    "nomic-bert": BY_MODEL_TYPE["nomic_bert"],
    "modern-bert": modern_bert.FAMILY,
    "gemma-embedding": embedding_gemma.FAMILY,
}


def family_of(values: Words) -> EncoderFamily | None:
    """Return the family of a config.json; decoders of the same model type are of none."""
    family = BY_MODEL_TYPE.get(str(values.get("model_type")))
    if family is embedding_gemma.FAMILY and not values.get("use_bidirectional_attention"):
        return None
    return family
