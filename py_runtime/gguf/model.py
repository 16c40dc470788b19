"""A GGUF file as a model: checked from end to end before a byte of its data goes anywhere."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from py_runtime.base.concurrency import aside
from py_runtime.base.shapes import numel
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import decoder_config, rotary_tables
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.decoder.family import GgufForm
from py_runtime.decoder.head import write_head
from py_runtime.decoder.program import write_decoder
from py_runtime.decoder.rotary import Floats
from py_runtime.decoder.tensors import WeightKind, expected_shapes, weight_names, weight_parts
from py_runtime.decoder.token_rows import TABLE, with_token_rows_given
from py_runtime.gguf.config import check_tensors, read_config, read_family
from py_runtime.gguf.constants import GgufConstants, WantedTensor
from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.fused_tensors import split_fused
from py_runtime.gguf.head import with_head
from py_runtime.gguf.names import (
    FREQUENCIES,
    LONG_FACTORS,
    SHORT_FACTORS,
    gguf_names,
    is_rotated,
)
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.gguf.stored_weights import FLOATS, KNOWN, kind_of
from py_runtime.gguf.token_rows import GgufTokenRows
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.program import Program
from py_runtime.weights.byte_source import ByteSource

LARGE_VOCABULARY = 10_000  # tokens, which take a while to read
ROPE_FACTOR_BOUNDS = (1e-3, 1e30)  # Gemma stops the turning of some pairs with the largest


@dataclass(frozen=True)
class GgufModel:
    """A model, all of it but the weights."""

    file: GgufFile
    values: dict[str, Any]  # as in config.json
    config: DecoderConfig
    program: Program
    tokenizer: dict[str, dict[str, Any]]  # tokenizer.json and tokenizer_config.json
    constants: GgufConstants
    token_rows: GgufTokenRows | None = None  # where tokens have something for each layer
    head: Program | None = None  # that foresees tokens
    head_fault: str | None = None  # why it goes without the one that the file has

    @property
    def parameters(self) -> int:
        return sum(numel(dims) for dims in expected_shapes(self.config).values())

    @property
    def quantisation(self) -> str:
        """The types of its tensors, the most frequent first."""
        kinds = Counter(
            tensor.info.kind.name
            for tensor in self.file.tensors.values()
            if len(tensor.info.dims) > 1
        )
        return " + ".join(name for name, _ in kinds.most_common())


async def open_model(sources: Sequence[ByteSource]) -> GgufModel:
    """Open one file, or all parts of one; GgufError says what is wrong, and where."""
    return await read_model(await open_gguf(sources))


async def read_model(file: GgufFile, sees: bool = False) -> GgufModel:
    """Read the decoder of an open file; `sees`: rows of images may stand in for embeddings."""
    form, values = read_family(file).gguf, read_config(file)
    config, head_fault = with_head(file, form, decoder_config(values, sees=sees))
    file = split_fused(file, form, config)
    check_tensors(file, config)
    kinds = _kinds(file, config)
    tables = await _tables(file, values, config)
    table = file.tensors[gguf_names(config)[TABLE]] if config.per_layer else None
    is_large = values["vocab_size"] > LARGE_VOCABULARY
    tokenizer = await aside(is_large, lambda: read_tokenizer(file.metadata))
    return GgufModel(
        file,
        values,
        config,
        with_token_rows_given(write_decoder(config, kinds, file.name)),
        tokenizer,
        GgufConstants(_wanted_tensors(file, config, form, kinds), tables),
        None if table is None else GgufTokenRows(table),
        write_head(config, kinds, f"{file.name}, head") if config.foresees else None,
        head_fault,
    )


def _kinds(file: GgufFile, config: DecoderConfig) -> dict[str, WeightKind]:
    """Return how each matrix is stored; types that no kernel reads yet are refused together."""
    names = gguf_names(config)
    stored = {name: file.tensors[names[name]].info for name in weight_names(config)}
    kinds = {name: kind_of(info.kind, info.dims[1]) for name, info in stored.items()}
    unknown = sorted({stored[name].kind.name for name, kind in kinds.items() if kind is None})
    if unknown:
        raise UnsupportedGgufError(
            f"{file.name} has tensors of {listed(unknown)}, which this engine cannot compute with "
            "yet",
            f"get the model as {', '.join(kind for kind in KNOWN if kind != 'F32')}",
        )
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _wanted_tensors(
    file: GgufFile, config: DecoderConfig, form: GgufForm, kinds: dict[str, WeightKind]
) -> dict[str, WantedTensor]:
    """Every tensor by the constants of the program that it gives."""
    wanted: dict[str, WantedTensor] = {}
    names = gguf_names(config)
    gates = {name for name in names if ".g_proj." in name}
    for name, dims in expected_shapes(config).items():
        stored = file.tensors[names[name]]
        owner = name.removesuffix(".weight")
        parts = weight_parts(kinds[name], *dims) if name in kinds else ()
        constants = {part: f"{owner}.{part}" for part in parts} or {"weight": name}
        if name not in kinds and stored.info.kind.name not in FLOATS:
            raise UnsupportedGgufError(
                f"{file.name}: {shown(stored.info.name)} is {stored.info.kind.name}, but norms and "
                f"biases are {', '.join(FLOATS)}",
                "get another file of this model",
            )
        reordered = form.pairs_side_by_side and is_rotated(name)
        head_dim = config.attention.head_dim if reordered else None
        tensor = WantedTensor(stored, constants, kinds.get(name), head_dim)
        if name in gates:  # comes with the queries
            continue
        gate = name.replace(".q_proj.", ".g_proj.")
        if gate in gates:
            owner = gate.removesuffix(".weight")
            second = {part: f"{owner}.{part}" for part in constants}
            tensor = replace(tensor, turns=config.attention.head_dim, second=second)
        wanted |= dict.fromkeys((*constants.values(), *tensor.second.values()), tensor)
    return wanted


async def _tables(
    file: GgufFile, values: dict[str, Any], config: DecoderConfig
) -> dict[str, Floats]:
    """Return the tables that are computed; some files carry factors for their frequencies."""
    factors = None
    stored = file.tensors.get(factors_name(values, config.context))
    if stored is not None:
        name = stored.info.name
        if stored.info.kind.name not in FLOATS:
            raise GgufError(f"{file.name}: {shown(name)} is {stored.info.kind.name}")
        data = await stored.source.read(stored.info.offset, stored.info.nbytes)
        factors = dequantise(stored.info.kind, data)
        least, most = ROPE_FACTOR_BOUNDS
        if not ((factors >= least) & (factors <= most)).all():
            raise GgufError(f"{file.name}: {shown(name)} has values that no factor has")
    return rotary_tables(values, config, factors)


def factors_name(values: dict[str, Any], context: int) -> str:
    """Return the tensor of frequency factors; of two sets, the context's length decides."""
    original = values["rope_parameters"].get("original_max_position_embeddings")
    if not BY_MODEL_TYPE[values["model_type"]].gguf.has_factor_tensors or original is None:
        return FREQUENCIES
    return LONG_FACTORS if context > original else SHORT_FACTORS
