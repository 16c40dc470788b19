"""An encoder's tensors: their names and shapes, as they follow from its sizes."""

from py_runtime.base.shapes import Dims
from py_runtime.encoder.config import EncoderConfig
from py_runtime.encoder.family import (
    AFTER,
    DENSE,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEY_NORM,
    KEYS,
    LAST_NORM,
    MIXED,
    POSITIONS,
    QUERIES,
    QUERY_NORM,
    SCORE,
    SCORE_HIDDEN,
    TYPES,
    UP,
    VALUES,
    WORDS,
)


def expected_shapes(config: EncoderConfig) -> dict[str, Dims]:
    """Return every tensor that a model must have."""
    c = config
    shapes: dict[str, Dims] = {WORDS: (c.vocabulary, c.width)}
    if not c.family.is_turned:
        shapes[POSITIONS] = (c.positions, c.width)
    if c.types:
        shapes[TYPES] = (c.types, c.width)
    if c.family.has_embedding_norm:
        shapes |= _norm(EMBEDDING_NORM, c)
    for number in range(c.layers):
        path = f"layers.{number}."
        for name, (rows, columns) in layer_matrices(c).items():
            shapes[f"{path}{name}.weight"] = (rows, columns)
            if c.family.has_biases:
                shapes[f"{path}{name}.bias"] = (rows,)
        for norm in c.family.norms_of(number):
            shapes |= _norm(path + norm, c)
        if c.family.qk_norms:
            shapes |= {f"{path}{norm}.weight": (c.head_dim,) for norm in (QUERY_NORM, KEY_NORM)}
    if c.family.norms != AFTER:
        shapes |= _norm(LAST_NORM, c)
    columns = c.width
    for number, rows in enumerate(c.dense):
        shapes[f"{DENSE.format(number=number)}.weight"] = (rows, columns)
        columns = rows
    if c.scores:
        for name, rows in ((SCORE_HIDDEN, c.width), (SCORE, 1)):
            shapes |= {f"{name}.weight": (rows, c.width), f"{name}.bias": (rows,)}
    return shapes


def layer_matrices(config: EncoderConfig) -> dict[str, tuple[int, int]]:
    """Return every matrix of a layer: rows, columns."""
    width, hidden = config.width, config.hidden
    queries, keys = (count * config.head_dim for count in (config.heads, config.kv_heads))
    attention = {
        QUERIES: (queries, width),
        KEYS: (keys, width),
        VALUES: (keys, width),
        MIXED: (width, queries),
    }
    gate = {GATE: (hidden, width)} if config.family.is_gated else {}
    return {**attention, **gate, UP: (hidden, width), DOWN: (width, hidden)}


def is_matrix(name: str, dims: Dims) -> bool:
    """Return whether a tensor may be stored in another kind than f32.

    Tables of positions and types are small, and rows of them are added.
    """
    return len(dims) == 2 and name not in (POSITIONS, TYPES)


def _norm(path: str, config: EncoderConfig) -> dict[str, Dims]:
    bias = {f"{path}.bias": (config.width,)} if config.family.norm_biases else {}
    return {f"{path}.weight": (config.width,), **bias}
