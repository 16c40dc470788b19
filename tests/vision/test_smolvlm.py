"""SmolVLM through a GGUF file and its mmproj: rows and answers are those of transformers."""

from typing import Any

import numpy as np
import pytest

from tests.runners import Runner
from tests.vision import small_models
from tests.vision.in_runtime import COUNT

pytestmark = pytest.mark.torch

CASES = "tests.vision.in_runtime"
LIMIT = 1e-4  # relative RMS
SIZES = ((40, 70), (64, 20), (30, 30), (1, 1))  # height, width
# Turns by texts and numbers of images: one; two and one in the second turn; another in the first;
# none; and the third again, behind others.
CHATS: list[Any] = [
    [[0, "what is the"]],
    [[0, "what is the"], ["ok"], ["and", 1, 0]],
    [[1, "what is the"], ["ok"], ["and", 1, 0]],
    [["hello"]],
    [[1, "what is the"], ["ok"], ["and", 1, 0]],
]


def images() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in SIZES]


def prompt_of(turns: list[Any], texts: list[str]) -> str:
    """Write a prompt as SmolVLM's template and processor do."""
    parts = [small_models.START]
    for at, turn in enumerate(turns):
        begins = ":" if not isinstance(turn[0], str) else ": "
        parts.append(("User", "Assistant")[at % 2] + begins)
        parts += [part if isinstance(part, str) else texts[part] for part in turn]
        parts.append(f"{small_models.END}\n")
    return "".join([*parts, "Assistant:"])


def test_rows_and_answers_are_those_of_transformers(runner: Runner) -> None:
    model, seen = small_models.make_model(), images()
    files = [small_models.model_file(model), small_models.projector_file(model)]
    found = runner.run(CASES, "see", files=files, images=seen, chats=CHATS)
    for rows, image in zip(found["rows"], seen, strict=True):
        wanted = small_models.features(model, image)
        difference = np.sqrt(np.mean((rows - wanted) ** 2) / np.mean(wanted**2))
        assert difference < LIMIT, (image.shape, difference)
    texts = [small_models.image_texts([image])[0] for image in seen]
    for turns, answer in zip(CHATS, found["answers"], strict=True):
        ids = small_models.encode(files[0], prompt_of(turns, texts))
        shown = [seen[part] for turn in turns for part in turn if not isinstance(part, str)]
        assert answer["prompt"] == len(ids), turns
        assert answer["tokens"] == small_models.greedy(model, ids, shown, COUNT), turns
    first, second, third, *_ = found["answers"]
    assert second["cached"] == first["prompt"], "the image of the first turn is in the cache"
    assert third["cached"] < 10, "another image is not"
    assert found["again"]["tokens"] == first["tokens"], "on a graph that was built anew"
    assert found["left"] == 0, "unloading gives all memory back"
