"""Sources of fused ops: every op that a pass replaced is named by what replaced it."""

from dataclasses import replace
from pathlib import Path

import pytest

from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.program import write_decoder
from py_runtime.gpu.kernel_target import PORTABLE, KernelTarget
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.passes.chain import CallAt, sources_of
from py_runtime.program import OpCall
from tests.export.checkpoints import save_checkpoint

pytestmark = pytest.mark.torch

# All fusions: heads with norms, windows and sums, convolutions, delta nets, experts, own rows,
# and two mixers side by side.
FAMILIES = (
    *("qwen3", "gemma 4", "lfm2", "qwen3.5", "granite 4 moe", "gpt-oss", "llama with biases"),
    "falcon-h1",
)
WIDE = KernelTarget(wide=True, lanes=32, storage_buffers=10)


@pytest.mark.parametrize("family", FAMILIES)
def test_fused_ops_list_all_that_they_replaced(family: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, family)
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    config = source.decoder_config(None)
    program = write_decoder(config, source.kinds(config), family)
    tagged = tuple(
        replace(call, source=f"line {at}: {call.name}") for at, call in enumerate(program.ops)
    )
    wanted = {call.source for call in tagged}
    for target in (PORTABLE, WIDE):
        fused = run_passes(replace(program, ops=tagged), target, DEFAULT_PASSES)
        assert len(fused.ops) < len(tagged)
        lines = [call.source.splitlines() for call in fused.ops]
        assert all(lines), "no op comes from nowhere"
        assert {line for own in lines for line in own} == wanted
        assert all(len(set(own)) == len(own) for own in lines)


def test_lines_come_in_their_order_and_once() -> None:
    calls = [CallAt(at, OpCall("op", (), line)) for at, line in ((7, "b"), (3, "a\nc"), (9, "a"))]
    assert sources_of(calls) == "a\nc\nb"
