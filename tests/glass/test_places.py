"""Places of ops: every layer in its turn, whatever a family's layers are made of."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.program import write_decoder
from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.places import EMBEDDING, HEAD, Places
from py_runtime.glass.points import points_of
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes import DEFAULT_PASSES, run_passes
from tests.export.checkpoints import save_checkpoint

pytestmark = pytest.mark.torch

# Own rows of tokens and sums folded over a layer's end, convolutions, delta nets, experts.
FAMILIES = ("gemma 4", "lfm2", "qwen3.5", "granite 4 moe", "falcon-h1", "nemotron-h")
WIDE = KernelTarget(wide=True, lanes=32, storage_buffers=10)


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_come_in_their_turn(family: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, family)
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    config = source.decoder_config(None)
    program = write_decoder(config, source.kinds(config), family)
    graph: Any = SimpleNamespace(
        written=program,
        target=WIDE,
        passes=DEFAULT_PASSES,
        program=run_passes(program, WIDE, DEFAULT_PASSES),
    )
    places = Places(graph)
    wanted = [EMBEDDING, *(f"layer {number}" for number in range(config.layers)), HEAD]
    assert places.sections == wanted
    for found in (places.before, places.after):
        sections = [place.section for place in found]
        assert sections == sorted(sections, key=wanted.index)
        for place in found:
            if place.layer is not None and place.module:
                assert place.module == f"layers.{place.layer}" or place.module.startswith(
                    f"layers.{place.layer}."
                ), place
            assert place.source


def test_what_a_head_reads_is_no_part_of_the_way_to_logits(tmp_path: Path) -> None:
    """The ends of tokens' ways are kept for it beside the last norm."""
    save_checkpoint(tmp_path, "qwen3.5")
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    plain = source.decoder_config(None)
    found = []
    for config in (plain, replace(plain, foresees=True)):
        program = write_decoder(config, source.kinds(config), "x")
        anatomy = Anatomy.of(program)
        tail = [call.name for call in (anatomy.select, *anatomy.tail)]
        found.append((len(anatomy.blocks), tail, list(points_of(anatomy))))
        graph: Any = SimpleNamespace(
            written=program,
            target=WIDE,
            passes=DEFAULT_PASSES,
            program=run_passes(program, WIDE, DEFAULT_PASSES),
        )
        assert Places(graph).sections[-1] == HEAD
    assert found[0] == found[1]
