"""Families that see, each by its own processor and positions: rows and answers as transformers'."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.generation.kept_states import TAIL
from py_runtime.vision.lfm2_vl import Lfm2Vl
from tests.runners import CpuRunner, Runner
from tests.vision.in_runtime import COUNT, Files
from tests.vision.small_families import SmallFamily
from tests.vision.small_gemma3 import SmallGemma3
from tests.vision.small_gemma4 import SmallGemma4
from tests.vision.small_lfm2 import SmallLfm2
from tests.vision.small_qwen import SmallQwen3, SmallQwen25
from tests.vision.test_smolvlm import CASES, CHATS, LIMIT, images, prompt_of

pytestmark = pytest.mark.torch

STRIP = (8, 150)
FAMILIES: dict[str, type[SmallFamily]] = {
    "gemma3": SmallGemma3,
    "gemma4": SmallGemma4,
    "qwen2.5-vl": SmallQwen25,
    "qwen3-vl": SmallQwen3,
    "lfm2-vl": SmallLfm2,
}


def files_of(form: str, small: SmallFamily, folder: Path) -> Files:
    if form == "gguf":
        return [small.model_file(), small.projector_file()]
    small.save_checkpoint(folder)
    return {path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in folder.iterdir()}


def check_rows(found: Any, small: SmallFamily, seen: list[np.ndarray]) -> None:
    for rows, image in zip(found["rows"], seen, strict=True):
        wanted = small.features(image)
        assert rows.shape == wanted.shape, image.shape
        difference = np.sqrt(np.mean((rows - wanted) ** 2) / np.mean(wanted**2))
        assert difference < LIMIT, (image.shape, difference)


def check(found: Any, small: SmallFamily, seen: list[np.ndarray]) -> None:
    check_rows(found, small, seen)
    texts = [small.text_of(image) for image in seen]
    for turns, answer in zip(CHATS, found["answers"], strict=True):
        ids = small.encode(prompt_of(turns, texts))
        shown = [seen[part] for turn in turns for part in turn if not isinstance(part, str)]
        assert answer["prompt"] == len(ids), turns
        assert answer["tokens"] == small.greedy(ids, shown, COUNT), turns
    first, second, *_ = found["answers"]
    # States that cannot be cut back are kept from a few tokens before the prompt's end.
    kept = first["prompt"] - (TAIL if small.carries else 0)
    assert second["cached"] == kept, "the image of the first turn is in the cache"
    assert found["again"]["tokens"] == first["tokens"], "on a graph that was built anew"
    assert (first["saw"], found["again"]["saw"]) == (True, False), "an image is computed once"
    assert found["left"] == 0, "unloading gives all memory back"


@pytest.mark.parametrize("form", ["gguf", "checkpoint"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_and_answers_are_those_of_transformers(
    cpu: CpuRunner, tmp_path: Path, family: str, form: str
) -> None:
    small, seen = FAMILIES[family](), images()
    files = files_of(form, small, tmp_path)
    check(cpu.run(CASES, "see", files=files, images=seen, chats=CHATS), small, seen)


@pytest.mark.parametrize("family", ["gemma4", "qwen2.5-vl", "qwen3-vl", "lfm2-vl"])
def test_images_of_any_size(cpu: CpuRunner, tmp_path: Path, family: str) -> None:
    """Images too small and too large for their processor, and strips, on one graph."""
    small, rng = FAMILIES[family](), np.random.default_rng(2)
    sizes = [(2, 2), (300, 200), (100, 7), (17, 65), STRIP]
    if family == "lfm2-vl":  # where it has too many rows for transformers itself
        sizes.remove(STRIP)
        sight = small.sight()
        assert isinstance(sight, Lfm2Vl)
        layout = sight.cutting.cut(*STRIP[::-1], is_coarse=False)
        assert layout.whole == (1, 16), "as many as a whole image may have"
    seen = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    files = files_of("gguf", small, tmp_path)
    found = cpu.run(CASES, "see", files=files, images=seen, chats=[[["hello"]]])
    check_rows(found, small, seen)


@pytest.mark.thorough  # of the kernels, tests/ops has each
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_gives_the_same(runner: Runner, tmp_path: Path, family: str) -> None:
    small, seen = FAMILIES[family](), images()
    files = files_of("gguf", small, tmp_path)
    check(runner.run(CASES, "see", files=files, images=seen, chats=CHATS), small, seen)
