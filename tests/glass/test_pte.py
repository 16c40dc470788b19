"""Decoders of .pte files have the same hooks."""

from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from tests.glass.test_runs import check_sums, difference
from tests.pte.counting import write_tokenizer
from tests.runners import CpuRunner

pytestmark = pytest.mark.torch

FILES = Path(__file__).parent.parent / "pte" / "files"
TOKENS = [5, 17, 60, 3, 44, 9, 80]
BLOCK = 20  # hooks of a layer that has all of them


@pytest.mark.parametrize("name", ["decoder_fp32", "decoder_4w"])
def test_a_pte_decoder_has_all_hooks(cpu: CpuRunner, tmp_path: Path, name: str) -> None:
    write_tokenizer(tmp_path)
    copy(FILES / f"{name}.pte", tmp_path / "model.pte")
    found = cpu.run("tests.glass.pte_cases", "runs", where=str(tmp_path), tokens=TOKENS)
    assert difference(found["logits"], found["plain"]) < 1e-4
    cache = found["cache"]
    check_sums(cache, 2)
    assert sum(each.startswith("blocks.1.") for each in cache) == BLOCK
    change = np.broadcast_to(found["vector"], found["difference"].shape)
    assert difference(found["difference"], change) < 1e-3
