"""The tokenizer is read while weights stream to the device; a damaged one leaves nothing there."""

from pathlib import Path
from typing import Any, cast

import pytest

from py_runtime.folder.file_names import CONFIG, TOKENIZER, TOKENIZER_CONFIG
from py_runtime.folder.layout import ModelFolder
from py_runtime.model import Model
from py_runtime.model.stores import open_store
from py_runtime.weights.constants import ArrayConstants, ConstantSource
from tests.runners import CpuRunner, wait

pytestmark = [pytest.mark.built, pytest.mark.torch]


class WatchedStore:
    """A store that tells what is asked of it, and when the first of its weights are."""

    def __init__(self, store: Any, damaged: str | None = None) -> None:
        self._store, self._damaged = store, damaged
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, model: ModelFolder, file: str) -> bytes | dict[str, Any]:
        self.log.append(file)
        return b"{" if file == self._damaged else await self._store.read(model, file)

    def constants(self, model: ModelFolder) -> ConstantSource:
        given = self._store.constants(model)
        source = given if isinstance(given, ConstantSource) else ArrayConstants(given)
        upload = source.upload

        async def logged(*where: Any) -> None:
            self.log.append("weights")
            await upload(*where)
            self.log.append("all weights")

        cast("Any", source).upload = logged
        return source


def test_weights_stream_while_the_tokenizer_is_read(cpu: CpuRunner, toy_model: Path) -> None:
    store = WatchedStore(wait(open_store(str(toy_model))))
    wait(Model.load(cpu.device, store)).unload()
    assert store.log[0] == "weights"
    assert {TOKENIZER, TOKENIZER_CONFIG, CONFIG} <= set(store.log)
    assert store.log.index(TOKENIZER_CONFIG) < store.log.index("all weights")


@pytest.mark.parametrize("damaged", [TOKENIZER, TOKENIZER_CONFIG, CONFIG])
def test_a_damaged_text_file_leaves_nothing(cpu: CpuRunner, toy_model: Path, damaged: str) -> None:
    device = cpu.device
    wait(Model.load(device, str(toy_model))).unload()  # its pipelines stay
    before = (device.counters.buffers_alive, device.bytes_left)
    store = WatchedStore(wait(open_store(str(toy_model))), damaged)
    with pytest.raises(Exception, match=f"{damaged} is not JSON"):
        wait(Model.load(device, store))
    assert (device.counters.buffers_alive, device.bytes_left) == before
