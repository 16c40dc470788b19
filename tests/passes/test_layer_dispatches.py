"""The number of kernels that each layer of each family takes for one token, without a GPU."""

import re
from pathlib import Path

import numpy as np
import pytest

from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.program import write_decoder
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.resize import LiveGraph
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program, TensorValue
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import FAMILIES
from tests.gguf.test_mixes import ROOMY

pytestmark = pytest.mark.torch

MAX_DISPATCHES, MAX_OF_A_HYBRID, MAX_WITH_MAMBA = 8, 10, 13
GRANITE_MIXTURES = ("granite 3 moe", "granite shared moe", "granite 4 moe")
MAMBAS = ("granite 4 h", "granite 4 h moe", "falcon-h1", "falcon-h1 with norms", "nemotron-h")
HYBRIDS = ("lfm2", "lfm2-moe", "qwen3.5", "qwen3-moe", "gpt-oss", *GRANITE_MIXTURES)
# Ordinary layers take [norm + q, k, v + rotary + caches], [attention], [output + residual],
# [norm + gate, up], [down + residual]; norms of heads are one more. Where a norm comes after
# attention or MLP, it and the sum are part of the next product; the last layer has none behind it.
# Layers with experts end with [norm], [router], [route], [gate, up], [down + residual]; an expert
# that all tokens share takes two more. Mamba-2 takes [norm], [in], [convolution], [scan], [norm],
# [out + residual]; a norm by groups one more, and an MLP without a gate [norm], [up], [relu],
# [square], [down + residual].
ORDINARY, HEADS_NORMED, NORMS_BEHIND = {5}, {6}, {6, 7}
OF_A_LAYER: dict[str, set[int]] = {
    "qwen3": HEADS_NORMED,
    "qwen3-vl": HEADS_NORMED,
    "olmo 2": NORMS_BEHIND,
    "olmo 3": NORMS_BEHIND,
    "exaone 4": NORMS_BEHIND,
    "exaone 4 hybrid": NORMS_BEHIND,
    "gemma 2": {6},  # its heads turn in the kernel of q, k and v, which binds much already
    "gemma 3": NORMS_BEHIND,
    "gemma 4": {8, 9},
    "ministral 3": {7},  # queries beyond the original context are scaled, and turn by themselves
    "lfm2": {6},
    "lfm2-moe": {6, 9},
    "qwen3.5": {10},
    "qwen3-moe": {9},
    "gpt-oss": {8},
    "granite 3 moe": {8},
    "granite shared moe": {10},
    "granite 4 moe": {10},
    "granite 4 h": {5, 8},
    "granite 4 h moe": {10, 13},
    "falcon-h1": {10},
    "falcon-h1 with norms": {12},
    "nemotron-h": {3, 5, 7},
}
WIDE = KernelTarget(wide=True, lanes=32, storage_buffers=10)
POSITION = 20
OF_LAYER = re.compile(r"layers\.(\d+)\.")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_takes_few_kernels(family: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, family)
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    config = source.decoder_config(None)
    program = write_decoder(config, source.kinds(config), family)
    found = dispatches_of_layers(program, WIDE)
    assert len(found) == config.layers
    assert set(found) == OF_A_LAYER.get(family, ORDINARY)
    most = MAX_OF_A_HYBRID if family in HYBRIDS else MAX_DISPATCHES
    assert max(found[:-1]) <= (MAX_WITH_MAMBA if family in MAMBAS else most)


def dispatches_of_layers(program: Program, target: KernelTarget) -> list[int]:
    """Count the dispatches of each layer while one token is decoded."""
    builder = Builder(run_passes(program, target, DEFAULT_PASSES), ROOMY, target)
    builder.build_ops()
    counts = np.zeros((len(builder.steps), 3), np.uint32)
    for row, step in zip(counts, builder.steps, strict=True):
        (step.launch if isinstance(step, LaunchSpec) else step).row = row.data
    live = LiveGraph(builder, counts)
    live.settle()
    live.resize([np.zeros((1, 1), np.int64), np.array([POSITION])])
    layers = layers_of_ops(builder.program)
    found = [0] * (max(layers) + 1)
    for op, step, count in zip(builder.step_ops, builder.steps, counts, strict=True):
        if layers[op] >= 0 and isinstance(step, LaunchSpec) and count[0]:
            found[layers[op]] += 1
    return found


def layers_of_ops(program: Program) -> list[int]:
    """Return each op's layer by its constants.

    One without any belongs to the layer before, or to -1.
    """
    found, last = [], -1
    for call in program.ops:
        values = [program.values[value_id] for value_id in program.reads(call)]
        names = [v.constant for v in values if isinstance(v, TensorValue) and v.constant]
        numbers = [int(own[1]) for name in names if (own := OF_LAYER.search(name))]
        if numbers:
            last = max(numbers)
        elif names or call.name == "aten.select_copy.int":  # of the last token
            last = -1
        found.append(last)
    return found
