"""A GGUF file of a text encoder, checked before a byte of its data is used."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from py_runtime.base.model_errors import ModelError
from py_runtime.base.shapes import numel
from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_LAYERS,
    MAX_WIDTH,
    THETAS,
)
from py_runtime.encoder.config import EPSILONS, EncoderConfig, encoder_config
from py_runtime.encoder.encoding import CLS, LAST, MEAN, Encoding
from py_runtime.encoder.families import BY_ARCHITECTURE
from py_runtime.encoder.family import (
    ATTENTION_NORM,
    DENSE,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEYS,
    LAST_NORM,
    MIXED,
    MLP_NORM,
    POSITIONS,
    QUERIES,
    TYPES,
    UP,
    VALUES,
    WORDS,
    EncoderFamily,
)
from py_runtime.encoder.program import rotary_tables, write_encoder
from py_runtime.encoder.tensors import expected_shapes, is_matrix
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.fused_tensors import rows_of
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.reader import GgufFile, StoredTensor
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.gguf.wanted_tensors import wanted_tensors
from py_runtime.program import Program

ARCHITECTURE = "general.architecture"
POOLING = "pooling_type"
POOLINGS = {1: MEAN, 2: CLS, 3: LAST}  # as llama.cpp numbers them
OF_THE_MODEL = {
    WORDS: "token_embd.weight",
    POSITIONS: "position_embd.weight",
    TYPES: "token_types.weight",
    f"{EMBEDDING_NORM}.weight": "token_embd_norm.weight",
    f"{EMBEDDING_NORM}.bias": "token_embd_norm.bias",
    f"{LAST_NORM}.weight": "output_norm.weight",
    **{f"{DENSE.format(number=n)}.weight": f"dense_{n + 2}.weight" for n in range(2)},
}
OF_A_LAYER = {
    QUERIES: "attn_q",
    KEYS: "attn_k",
    VALUES: "attn_v",
    MIXED: "attn_output",
    ATTENTION_NORM: "attn_output_norm",
    GATE: "ffn_gate",
    UP: "ffn_up",
    DOWN: "ffn_down",
    MLP_NORM: "layer_output_norm",
}
FUSED = "attn_qkv"  # rows of queries, keys and values in one matrix
FUSED_MLP = "ffn_up"  # rows of gate and up, where the family has them in one
Tensors = Mapping[str, StoredTensor]  # by the engine's names


@dataclass(frozen=True)
class GgufEncoder:
    """An encoder, all of it but the weights."""

    file: GgufFile
    values: dict[str, Any]  # as in config.json
    config: EncoderConfig
    program: Program
    tokenizer: dict[str, dict[str, Any]]  # tokenizer.json and tokenizer_config.json
    constants: GgufConstants
    encoding: Encoding
    token_rows: None = None

    @property
    def parameters(self) -> int:
        return sum(numel(dims) for dims in expected_shapes(self.config).values())

    @property
    def quantisation(self) -> str:
        return kinds_of(self.file.tensors)


def is_encoder(file: GgufFile) -> bool:
    """Return whether the file has a text encoder."""
    metadata = file.metadata
    return ARCHITECTURE in metadata and metadata.text(ARCHITECTURE) in BY_ARCHITECTURE


def read_encoder(file: GgufFile) -> GgufEncoder:
    """Read the encoder; GgufError says what is wrong with the file."""
    keys = Keys(file.metadata, file.metadata.text(ARCHITECTURE))
    values = _read_values(file, keys)
    try:
        config = replace(encoder_config(values), dense=_dense_rows(file))
    except ModelError as error:
        raise GgufError(f"{file.name}: {error}") from None
    tensors = _tensors(file, config)
    program, constants = encoder_parts(config, tensors, file.name)
    tokenizer = read_tokenizer(file.metadata)
    encoding = _read_encoding(keys)
    return GgufEncoder(file, values, config, program, tokenizer, constants, encoding)


def encoder_parts(
    config: EncoderConfig,
    tensors: Tensors,
    name: str,
    given: Mapping[str, np.ndarray] | None = None,
) -> tuple[Program, GgufConstants]:
    """Return the program and its constants, of tensors that have the shapes they must have.

    Some are `given` as they are.
    """
    given = given or {}
    shapes = {own: dims for own, dims in expected_shapes(config).items() if own not in given}
    matrices = {own for own, dims in shapes.items() if is_matrix(own, dims)}
    kinds, wanted = wanted_tensors(shapes, matrices, tensors, name)
    program = write_encoder(config, kinds, name)
    return program, GgufConstants(wanted, {**rotary_tables(config), **given})


def kinds_of(tensors: Mapping[str, StoredTensor]) -> str:
    """Name the types of matrices, the most frequent first."""
    kinds = Counter(
        tensor.info.kind.name for tensor in tensors.values() if len(tensor.info.dims) > 1
    )
    return " + ".join(name for name, _ in kinds.most_common())


def _read_values(file: GgufFile, keys: Keys) -> dict[str, Any]:
    """Return what a config.json would say."""
    if keys.flag("attention.causal", False):
        raise keys.unsupported("attention.causal", "says that tokens see only those before them")
    family = BY_ARCHITECTURE[keys.architecture]
    types, words = file.tensors.get(OF_THE_MODEL[TYPES]), file.tensors.get(OF_THE_MODEL[WORDS])
    tokens = len(file.metadata.texts("tokenizer.ggml.tokens"))
    if words is not None and words.info.dims[0] != tokens:
        rows = words.info.dims[0]
        raise GgufError(f"{file.name} has {tokens} tokens, but embeddings of {rows}")
    return {
        "model_type": family.model_type,
        "vocab_size": tokens,
        "hidden_size": keys.integer("embedding_length", 1, MAX_WIDTH),
        "intermediate_size": keys.integer("feed_forward_length", 1, MAX_HIDDEN),
        "num_hidden_layers": keys.integer("block_count", 1, MAX_LAYERS),
        "num_attention_heads": keys.integer("attention.head_count", 1, MAX_HEADS),
        "max_position_embeddings": keys.integer("context_length", 1, MAX_CONTEXT),
        "type_vocab_size": 0 if types is None else types.info.dims[0],
        **(family.gguf_words(keys) or _usual_words(keys)),
    }


def _usual_words(keys: Keys) -> dict[str, Any]:
    return {
        "layer_norm_eps": keys.number("attention.layer_norm_epsilon", *EPSILONS),
        "rope_parameters": {"rope_theta": keys.number("rope.freq_base", *THETAS, default=1000.0)},
    }


def _dense_rows(file: GgufFile) -> tuple[int, ...]:
    """Return the rows of the products behind the pooling."""
    names = [OF_THE_MODEL[f"{DENSE.format(number=number)}.weight"] for number in range(2)]
    return tuple(file.tensors[name].info.dims[0] for name in names if name in file.tensors)


def _read_encoding(keys: Keys) -> Encoding:
    found = keys.integer(POOLING, 0, 100, default=1)
    if found == 4:
        raise keys.unsupported(POOLING, "asks for scores of pairs of texts")
    if found not in POOLINGS:
        raise keys.unsupported(POOLING, f"is {found}")
    return Encoding(POOLINGS[found])


def _tensors(file: GgufFile, config: EncoderConfig) -> Tensors:
    """Return all tensors that the encoder needs, in their shapes; GgufError lists the faults."""
    shapes = expected_shapes(config)
    stored = _split(file, config)
    faults = []
    for own, dims in shapes.items():
        name = gguf_name(own, config.family)
        if name not in stored:
            faults.append(f"{shown(name)} is missing")
        elif stored[name].info.dims != dims:
            found = list(stored[name].info.dims)
            faults.append(f"{shown(name)} has the shape {found}, not {list(dims)}")
    if faults:
        raise GgufError(f"{file.name}: {listed(faults)}")
    known = {gguf_name(own, config.family) for own in shapes}
    others = [name for name in stored if name not in known]
    if others:
        raise UnsupportedGgufError(
            f"{file.name} has tensors that this engine does not compute with: "
            f"{listed(map(shown, others))}",
            "get another model, or another file of this one",
        )
    return {own: stored[gguf_name(own, config.family)] for own in shapes}


def _split(file: GgufFile, config: EncoderConfig) -> dict[str, StoredTensor]:
    """Return the file's tensors, those of queries, keys and values each by themselves."""
    tensors = dict(file.tensors)
    for number in range(config.layers):
        names = [f"blk.{number}.{OF_A_LAYER[own]}.weight" for own in (QUERIES, KEYS, VALUES)]
        split_rows(tensors, f"blk.{number}.{FUSED}.weight", names, config.width)
        if config.family.fused_mlp:
            names = [f"blk.{number}.{OF_A_LAYER[own]}.weight" for own in (GATE, UP)]
            split_rows(tensors, f"blk.{number}.{FUSED_MLP}.weight", names, config.hidden)
    return tensors


def split_rows(
    tensors: dict[str, StoredTensor], fused: str, names: Sequence[str], rows: int
) -> None:
    """Put parts of so many rows in the place of the fused tensor, if there is one."""
    whole = tensors.get(fused)
    if whole is None or whole.info.dims[0] != rows * len(names):
        return  # one of another shape stays, to be reported
    del tensors[fused]
    for place, name in enumerate(names):
        tensors[name] = rows_of(whole, place * rows, rows)


def gguf_name(name: str, family: EncoderFamily) -> str:
    """Return what files call a tensor."""
    if name in OF_THE_MODEL:
        return OF_THE_MODEL[name]
    _, number, part = name.split(".", 2)
    owner, _, ending = part.rpartition(".")
    return f"blk.{number}.{family.gguf_parts.get(owner) or OF_A_LAYER[owner]}.{ending}"
