"""SmolVLM through a GGUF file and its mmproj: rows and answers are those of transformers."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers import PreTrainedModel

from tests.runners import CpuRunner, Runner
from tests.vision import small_models
from tests.vision.in_runtime import COUNT, Files

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


def files_of(form: str, model: PreTrainedModel, folder: Path) -> Files:
    if form == "gguf":
        return [small_models.model_file(model), small_models.projector_file(model)]
    small_models.save_checkpoint(folder, model, max_shard_size="80KB")
    return {path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in folder.iterdir()}


@pytest.mark.thorough_in_page
@pytest.mark.parametrize("form", ["gguf", "checkpoint"])
def test_rows_and_answers_are_those_of_transformers(
    runner: Runner, tmp_path: Path, form: str
) -> None:
    model, seen = small_models.make_model(), images()
    files = files_of(form, model, tmp_path)
    found = runner.run(CASES, "see", files=files, images=seen, chats=CHATS)
    for rows, image in zip(found["rows"], seen, strict=True):
        wanted = small_models.features(model, image)
        difference = np.sqrt(np.mean((rows - wanted) ** 2) / np.mean(wanted**2))
        assert difference < LIMIT, (image.shape, difference)
    texts = [small_models.image_texts([image])[0] for image in seen]
    tokenizer = small_models.model_file(model)
    for turns, answer in zip(CHATS, found["answers"], strict=True):
        ids = small_models.encode(tokenizer, prompt_of(turns, texts))
        shown = [seen[part] for turn in turns for part in turn if not isinstance(part, str)]
        assert answer["prompt"] == len(ids), turns
        assert answer["tokens"] == small_models.greedy(model, ids, shown, COUNT), turns
    first, second, third, *_ = found["answers"]
    assert second["cached"] == first["prompt"], "the image of the first turn is in the cache"
    assert third["cached"] < 10, "another image is not"
    assert found["again"]["tokens"] == first["tokens"], "on a graph that was built anew"
    assert found["left"] == 0, "unloading gives all memory back"


def test_requests_have_images_as_addresses(cpu: CpuRunner) -> None:
    model = small_models.make_model()
    both = [small_models.model_file(model), small_models.projector_file(model)]
    stream = io.BytesIO()
    Image.fromarray(images()[0]).save(stream, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"

    def asked(*parts: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": [*parts]}], "max_tokens": 1}

    said = {"type": "text", "text": "<image> is what I write"}
    high, low = (
        {"type": "image_url", "image_url": {"url": url, "detail": detail}}
        for detail in ("high", "low")
    )
    given = [
        asked(said),
        asked(high, said),
        asked(low, said),
        asked({"type": "image", "image": "/etc/hostname"}, said),
        {**asked(said), "allow_special": True},
    ]
    found = cpu.run(CASES, "requests", files=both, requests=given)
    tiles = 5 * small_models.CONFIG.rows
    assert found[1] - found[0] > tiles > found[2] - found[0] > small_models.CONFIG.rows
    assert "data: address" in found[3]
    assert "placeholder" in found[4]
    blind = cpu.run(CASES, "requests", files=both[:1], requests=given[:2])
    assert isinstance(blind[0], int)
    assert "small cannot see images" in blind[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"projector_type": "ldp"}, "projector of the type 'ldp'"),
        ({"projector_type": "gemma3"}, "belongs to another model: it is Gemma 3's"),
        ({"vision.image_size": 64}, "has the shape"),
        ({"vision.patch_size": 6}, "cannot be put together"),
        ({"vision.attention.head_count": 5}, "5 heads do not share 24 columns"),
        ({"vision.image_std": [0.5, 0.0, 0.5]}, "mean and deviation"),
    ],
)
def test_towers_that_lie_are_refused(cpu: CpuRunner, changes: dict[str, Any], said: str) -> None:
    model = small_models.make_model()
    files = [small_models.model_file(model), small_models.projector_file(model, **changes)]
    assert said in cpu.run(CASES, "fault_of", files=files)
