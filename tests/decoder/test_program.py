"""The program written in Python is the one that torch.export gives, op for op, for each family."""

from pathlib import Path
from typing import Any

import pytest

from export.decoder_graph import export_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.program import write_decoder
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program, SymIntValue, TensorValue, ValueListValue
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import FAMILIES

pytestmark = pytest.mark.torch


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


def both(folder: Path, family: str, quantisation: str) -> tuple[Program, Program]:
    save_checkpoint(folder, family)
    source = HuggingFaceSource.open(folder, Quantisation(quantisation))
    config = source.decoder_config(None)
    exported = export_decoder(source, config).program
    return exported, write_decoder(config, source.kinds(config), source.name)


CASES = [(family, "none") for family in FAMILIES]
CASES += [("llama with biases", "q8"), ("smollm2", "q4"), ("qwen3", "q4")]


@pytest.mark.parametrize(("family", "quantisation"), CASES)
def test_it_is_what_torch_export_gives(family: str, quantisation: str, tmp_path: Path) -> None:
    exported, written = both(tmp_path, family, quantisation)
    assert Canonical(written).whole() == Canonical(exported).whole()


def test_passes_fuse_it_as_well(tmp_path: Path) -> None:
    programs = both(tmp_path, "qwen3", "q8")
    exported, written = (run_passes(each, PORTABLE, DEFAULT_PASSES) for each in programs)
    assert Canonical(written).whole() == Canonical(exported).whole()
    assert "inpage.qkv_rotary_cache.default" in {op.name for op in written.ops}
