"""Loading natively tells the same phases and is cancelled the same way."""

import asyncio
import json
import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError, GpuOutOfMemoryError
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.on_disk import open_model_folder
from py_runtime.model import Model, check_requirements
from py_runtime.tokens import Tokenizer
from tests.conftest import START_SECONDS
from tests.runners import NativeRunner, wait

CASES = "tests.folder.loading_cases"


def test_progress(native: NativeRunner, toy_model: Path) -> None:
    told = native.run(CASES, "load", where=str(toy_model))["progress"]
    last = {phase: (done, total) for phase, done, total in told}
    assert last.keys() == {"upload", "shaders"}
    assert all(done == total > 0 for done, total in last.values())


@pytest.mark.parametrize("at", [("upload", 0.0), ("shaders", 0.0)])
def test_cancelling(native: NativeRunner, toy_model: Path, at: tuple[str, float]) -> None:
    result = native.run(CASES, "load", where=str(toy_model), cancel_at=at)
    assert result["error"] == ["aborted", "cancelled"]
    assert result["buffers left"] == 0
    assert native.run(CASES, "load", where=str(toy_model))["error"] is None


def test_stop_is_heard_while_a_tokenizer_is_read(
    native: NativeRunner, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = threading.Event(), threading.Event()
    read = Tokenizer.from_json

    def read_slowly(source: bytes) -> Tokenizer:
        begun.set()
        assert stopped.wait(START_SECONDS), "nothing else is done meanwhile"
        return read(source)

    monkeypatch.setattr(Tokenizer, "from_json", read_slowly)

    async def stop() -> None:
        cancel = CancelToken()
        loading = asyncio.ensure_future(Model.load(native.device, str(toy_model), cancel=cancel))
        assert await asyncio.to_thread(begun.wait, START_SECONDS)
        cancel.cancel()
        with pytest.raises(AbortedError):
            await loading
        stopped.set()

    wait(stop())


def test_what_the_device_lacks_is_said_first(native: NativeRunner, toy_model: Path) -> None:
    manifest = open_model_folder(toy_model).manifest
    check_requirements(manifest, native.device)
    has = native.device.limits["max_buffer_size"]

    def needing(**wanted: Any) -> Any:
        return replace(manifest, requires=replace(manifest.requires, **wanted))

    check_requirements(needing(limits={"max_buffer_size": has}), native.device)
    with pytest.raises(GpuOutOfMemoryError) as caught:
        check_requirements(needing(limits={"max_buffer_size": has * 8}), native.device)
    assert str(caught.value).startswith("Toy needs a GPU buffer of ")
    assert "this device allows" in str(caught.value)
    assert "--max-seq-len" in str(caught.value)
    with pytest.raises(ModelError, match=r"needs the GPU feature 'telepathy'; use a browser"):
        check_requirements(needing(features=("telepathy",)), native.device)
    with pytest.raises(ModelError, match=r"needs max_bind_groups 99; this device has \d+"):
        check_requirements(needing(limits={"max_bind_groups": 99}), native.device)
    with pytest.raises(ModelError, match=r"needs max_telepathy 1; this device has 0"):
        check_requirements(needing(limits={"max_telepathy": 1}), native.device)


@pytest.mark.parametrize("context", [0, 513, 2**40])
def test_a_context_that_the_graph_has_no_room_for(
    context: int, native: NativeRunner, toy_model: Path, tmp_path: Path
) -> None:
    shutil.copytree(toy_model, tmp_path / "Toy")
    path = tmp_path / "Toy" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"context": context}))
    result = native.run(CASES, "load", where=str(path.parent))
    assert result["error"] == [
        "model_error",
        f"Toy has a context of {context} positions by its description, but its graph has room for "
        "1 to 512; download the model again, or export it again",
    ]
    assert result["buffers left"] == 0


def test_a_model_is_rebuilt(native: NativeRunner, toy_model: Path) -> None:
    before, after, more_buffers, phases = native.run(CASES, "rebuild", where=str(toy_model))
    np.testing.assert_array_equal(before, after)
    assert more_buffers == 0
    assert phases == ["shaders", "upload"]


def test_a_gpu_without_the_memory_is_named_and_left_usable(
    native: NativeRunner, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(specs: Any) -> Any:
        raise GpuOutOfMemoryError("buffer 'embed_tokens' (16384 bytes): not enough GPU memory")

    monkeypatch.setattr(native.device, "_create_buffers", refuse)
    result = native.run(CASES, "load", where=str(toy_model))
    code, text = result["error"]
    assert code == "gpu_out_of_memory"
    assert re.search(r" needs [0-9.]+ MB of memory, more than this device has free", text)
    assert "embed_tokens" in text
    assert result["buffers left"] == 0
    monkeypatch.undo()
    assert native.run(CASES, "load", where=str(toy_model))["error"] is None
