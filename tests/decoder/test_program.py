"""The decoder's program is what torch.export makes of its oracle, op for op, for each family."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim, ExportedProgram, export

from export.decoder import Decoder
from export.lower import lower
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.program import write_decoder
from py_runtime.decoder.tensors import WeightKind
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program, SymIntValue, TensorValue, ValueListValue
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import FAMILIES

pytestmark = pytest.mark.torch

EXAMPLE_TOKENS = 16  # any length but 0 and 1, which torch.export would take for special


class Canonical:
    """A program's ops with values told apart by what they are and when they first appear.

    Tensors in between have torch's names in one program and none in the other: only those of hidden
    states, which goldens ask for, are compared.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._numbers: dict[int, int] = {}

    def whole(self) -> Any:
        inputs = [(self.value(i.value), sorted(i.dynamic_dims)) for i in self._program.inputs]
        ops = [(op.name, [self.value(arg) for arg in op.args]) for op in self._program.ops]
        return [*inputs, *ops, [self.value(out) for out in self._program.outputs]]

    def value(self, value_id: int) -> Any:
        value = self._program.values[value_id]
        if isinstance(value, ValueListValue):
            return [self.value(item) for item in value.ids]
        if isinstance(value, SymIntValue):
            return ("int", self._number(value_id))
        if isinstance(value, TensorValue):
            known = value.constant or (value.state and value.name) or hidden_state(value.name)
            facts = (value.dtype.name, value.dims, value.state, known)
            return (*facts, self._number(value_id))
        return value

    def _number(self, value_id: int) -> int:
        return self._numbers.setdefault(value_id, len(self._numbers))


def hidden_state(name: str) -> str:
    is_one = name in ("embedding", "norm", "tokens", "pos") or name.startswith("layers.")
    return name if is_one else ""


def traced(config: DecoderConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Trace the oracle with torch.export, without any weights."""
    with torch.device("meta"):
        decoder = Decoder(config, kinds).eval()
        tokens = torch.zeros(1, EXAMPLE_TOKENS, dtype=torch.int64)
        position = torch.zeros(1, dtype=torch.int64)
    length = Dim("tokens", min=1, max=config.max_chunk)
    with torch.no_grad():
        exported = export(decoder, (tokens, position), dynamic_shapes=({1: length}, None))
    return with_hidden_states(lower(exported, name).program(), exported)


def with_hidden_states(program: Program, exported: ExportedProgram) -> Program:
    """Give hidden states the names that goldens know: "embedding", "layers.0", …, "norm"."""
    results: dict[str, str] = {}  # a module's last call gives its result: path → torch's name
    for node in exported.graph.nodes:
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        if len(modules) > 1:
            path = modules[1][0]
            if path == "layers.0" and path not in results:
                results["embedding"] = node.all_input_nodes[0].name
            results[path] = node.name
    names = {node: path for path, node in results.items() if hidden_state(path)}
    given = {each.value for each in program.inputs}
    values = [
        replace(value, name=names.get(value.name, ""))
        if isinstance(value, TensorValue) and not value.persistent and value_id not in given
        else value
        for value_id, value in enumerate(program.values)
    ]
    return replace(program, values=tuple(values))


def both(folder: Path, family: str, quantisation: str) -> tuple[Program, Program]:
    save_checkpoint(folder, family)
    source = HuggingFaceSource.open(folder, Quantisation(quantisation))
    config = source.decoder_config(None)
    oracle = traced(config, source.kinds(config), source.name)
    return oracle, write_decoder(config, source.kinds(config), source.name)


# Between them these have every part of a decoder; `make test-all` has every family.
FIRST = (
    *("smollm2", "qwen3", "phi-4-mini", "gemma 2", "gemma 4", "olmo 2", "exaone 4 hybrid"),
    *("lfm2", "qwen3.5", "qwen3-moe", "gpt-oss", "granite shared moe", "granite 4 h moe"),
    *("falcon-h1", "nemotron-h"),
)
CASES = [
    pytest.param(family, "none", marks=[] if family in FIRST else [pytest.mark.thorough])
    for family in FAMILIES
]
CASES += [
    pytest.param(family, quantisation)
    for family, quantisation in (
        *(("llama with biases", "q8"), ("smollm2", "q4"), ("qwen3", "q4")),
        *(("llama with biases", "q4gsw"), ("qwen3-moe", "q4gsw")),
    )
]


@pytest.mark.parametrize(("family", "quantisation"), CASES)
def test_it_is_what_torch_export_gives(family: str, quantisation: str, tmp_path: Path) -> None:
    oracle, written = both(tmp_path, family, quantisation)
    assert Canonical(written).whole() == Canonical(oracle).whole()


def test_passes_fuse_it_as_well(tmp_path: Path) -> None:
    programs = both(tmp_path, "qwen3", "q8")
    oracle, written = (run_passes(each, PORTABLE, DEFAULT_PASSES) for each in programs)
    assert Canonical(written).whole() == Canonical(oracle).whole()
    assert "inpage.qkv_rotary_cache.default" in {op.name for op in written.ops}
