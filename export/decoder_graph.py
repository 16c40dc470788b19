"""The decoder's graph of a source: its program, and the names of the data that it asks for."""

from dataclasses import dataclass

from export.sources import Source
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.program import write_decoder
from py_runtime.program import Program


@dataclass(frozen=True)
class DecoderGraph:
    """The program, and the data it needs from the source."""

    config: DecoderConfig
    program: Program
    constants: list[str]  # names of the data the program needs


def export_decoder(source: Source, config: DecoderConfig) -> DecoderGraph:
    """Write the graph without any weights: shapes and kinds alone decide it."""
    program = write_decoder(config, source.kinds(config), source.name)
    constants = {name for _, _, name in program.constants()}
    return DecoderGraph(config, program, sorted(constants))
