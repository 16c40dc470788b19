"""The decoder's graph, made from a source: checked, exported on the meta device, lowered."""

from dataclasses import dataclass

import torch
from torch.export import Dim, ExportedProgram, export
from torch.fx import Node

from export.decoder import Decoder
from export.lower import VALUE_NAME, lower
from export.sources import Source
from py_runtime.decoder.config import DecoderConfig
from py_runtime.program import Program

EXAMPLE_TOKENS = 16  # any length but 0 and 1, which torch.export would take for special


@dataclass(frozen=True)
class DecoderGraph:
    """The program, and the data it needs from the source."""

    config: DecoderConfig
    program: Program
    constants: list[str]  # names of the data the program needs


def export_decoder(source: Source, config: DecoderConfig) -> DecoderGraph:
    """Traced without any weights: shapes and kinds alone decide the graph."""
    with torch.device("meta"):
        decoder = Decoder(config, source.kinds(config)).eval()
        tokens = torch.zeros(1, min(EXAMPLE_TOKENS, config.max_chunk), dtype=torch.int64)
        position = torch.zeros(1, dtype=torch.int64)
    length = Dim("tokens", min=1, max=config.max_chunk)
    with torch.no_grad():
        exported = export(decoder, (tokens, position), dynamic_shapes=({1: length}, None))
    _name_hidden_states(exported)
    program = lower(exported, source.name).program()
    constants = {name for _, _, name in program.constants()}
    return DecoderGraph(config, program, sorted(constants))


def _name_hidden_states(exported: ExportedProgram) -> None:
    """Name the values that goldens know (export/reference.py): "embedding", "layers.0", "norm"."""
    results: dict[str, Node] = {}  # a module's last call gives its result
    for node in exported.graph.nodes:
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        if len(modules) > 1:
            path = modules[1][0]
            if path == "layers.0" and path not in results:
                results["embedding"] = node.all_input_nodes[0]
            results[path] = node
    for node in exported.graph.nodes:
        if node.name in ("embedding", "norm"):  # torch's own name for what may be another value
            node.meta[VALUE_NAME] = ""
    for path, node in results.items():
        if path.startswith("layers.") or path in ("embedding", "norm"):
            node.meta[VALUE_NAME] = path
