"""The steps of an export: source → graph → goldens → folder."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import Progress

from export.decoder_graph import DecoderGraph, export_decoder
from export.default_model import NAME, default_gguf
from export.errors import ExportError
from export.gguf_source import GgufSource
from export.model_writer import DEFAULT_SHARD_SIZE, ModelFacts, write_model
from export.prompts import golden_prompts
from export.reference import Goldens, make_goldens, reference_decoder
from export.sources import HuggingFaceSource, Quantisation, Source
from py_runtime.base.shapes import numel
from py_runtime.base.sizes import in_words
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.tensors import expected_shapes
from py_runtime.decoder.token_rows import with_token_rows_given
from py_runtime.folder import manifest
from py_runtime.graph.buffers import BufferPlan, measure
from py_runtime.model.program_sizes import cache_bytes

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
HUB_FILES = ("*.json", "*.safetensors", "*.jinja")
# Goldens are made by the same model in float32; past this its weights would crowd the machine.
MAX_GOLDEN_PARAMETERS = 150_000_000
GOLDEN_CONTEXT = 512  # positions they reach


@dataclass(frozen=True)
class Request:
    """The options of the command line."""

    source: str
    quantisation: str = "q4gsw"
    group_size: int = 32
    context: int | None = None
    shard_size: int = DEFAULT_SHARD_SIZE


@dataclass(frozen=True)
class Prepared:
    """A model that is ready to be written, without its weights."""

    request: Request
    source: Source
    goldens: Goldens | None
    graph: DecoderGraph
    memory: BufferPlan

    @property
    def parameters(self) -> int:
        return parameter_count(self.graph.config)

    def facts(self) -> dict[str, str]:
        """Return the rows of the closing table."""
        config, report = self.graph.config, self.memory.report
        return {
            "model": self.source.name,
            "layers": f"{config.layers}, width {config.width}, vocabulary {config.vocabulary}",
            "parameters": f"{self.parameters / 1e6:.1f} M",
            "weights": f"{in_words(report.constants)}, {quantisation_name(self.source)}",
            "context": f"{config.context} positions, {in_words(report.state)} of KV cache",
            "ops": f"{len(self.graph.program.ops)}",
            "GPU memory": f"{in_words(report.peak)} at full context",
        }


def prepare(request: Request, with_goldens: bool = True) -> Prepared:
    """Check a source, make its goldens, and write its graph."""
    source = open_source(request)
    config = source.decoder_config(request.context)
    source.check(expected_shapes(config))
    goldens = _goldens(source, config) if with_goldens else None
    graph = export_decoder(source, config)
    return Prepared(request, source, goldens, graph, measure(with_token_rows_given(graph.program)))


def parameter_count(config: DecoderConfig) -> int:
    """Count the weights that a source has to have; tied ones count once."""
    return sum(numel(shape) for shape in expected_shapes(config).values())


def _goldens(source: Source, config: DecoderConfig) -> Goldens | None:
    if parameter_count(config) > MAX_GOLDEN_PARAMETERS:
        return None
    short = replace(config, context=min(config.context, GOLDEN_CONTEXT))
    return make_goldens(reference_decoder(source, short), golden_prompts(source.tokenizer))


def open_source(request: Request) -> Source:
    """Open a GGUF file, a folder, a hub id, or 'default'.

    ExportError says what is wrong with it.
    """
    quantisation = Quantisation(request.quantisation, request.group_size)
    if request.source == "default":
        source: Source = GgufSource.open(default_gguf(), quantisation)
        source.name = NAME
        return source
    path = Path(request.source)
    if path.suffix == ".gguf":
        return GgufSource.open(path, quantisation)
    if path.is_dir():
        return HuggingFaceSource.open(path, quantisation)
    source = HuggingFaceSource.open(_from_hub(request.source), quantisation)
    source.name = request.source.rpartition("/")[2]
    return source


def _from_hub(name: str) -> Path:
    if not HUB_ID.fullmatch(name):
        raise ExportError(f"there is no folder {name}, and it is not a hub id such as owner/name")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # the hub's client raises many kinds, all with a readable text
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExportError(f"{name} cannot be fetched from the hub: {reason}") from None


def export_model(prepared: Prepared, out: Path, progress: Progress) -> None:
    """Write the folder of a prepared model, goldens included; all of it or nothing."""
    source, graph = prepared.source, prepared.graph
    task = progress.add_task("writing", total=None)
    files = {"config.json": source.hf_config, **source.tokenizer}
    largest = max(spec.size for spec in prepared.memory.specs.values())
    write_model(
        out,
        graph.program,
        source.constants(graph.config, graph.constants),
        ModelFacts(
            name=source.name,
            parameters=prepared.parameters,
            context=graph.config.context,
            gpu_bytes=prepared.memory.report.peak,
            cache_bytes=cache_bytes(graph.program),
            max_buffer_size=largest,
            max_storage_buffer_binding_size=largest,
            source=manifest.Source(source.name, None, source.licence),
            quantisation=quantisation_name(source),
        ),
        {name: json.dumps(content, ensure_ascii=False).encode() for name, content in files.items()},
        prepared.goldens,
        prepared.request.shard_size,
        lambda done, total: progress.update(task, completed=done, total=total),
    )


def quantisation_name(source: Source) -> str:
    """Return the kinds of the weights, the most frequent first."""
    config = source.decoder_config(None)
    kinds = [kind.name for kind in source.kinds(config).values()]
    return " + ".join(sorted(set(kinds), key=lambda kind: -kinds.count(kind)))
