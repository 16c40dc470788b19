"""Tensors on their way to the GPU: the bytes that the exporter writes, whatever the pieces."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from export.gguf_source import GgufSource
from export.sources import Quantisation
from py_runtime.base.errors import GraphError
from py_runtime.base.progress import UPLOAD, Meter
from py_runtime.gguf import constants
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.model import GgufModel, open_model
from py_runtime.gpu import Buffer, Device, Write
from py_runtime.program.writer import ProgramWriter
from py_runtime.weights.byte_source import ByteSource, Pieces
from py_runtime.weights.constants import Place
from tests.export.gguf_files import write_gguf
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import Tensor, file
from tests.pte.memory_source import MemorySource

pytestmark = pytest.mark.torch

KINDS = [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1]
FAMILIES = {
    "llama with biases": "llama",
    "qwen2.5": "qwen2",
    "qwen3": "qwen3",
    "mistral": "llama",
    "lfm2": "lfm2",
    "qwen3.5": "qwen35",
    "nemotron-h": "nemotron_h",
}
ROOM = 64  # bytes before what is written


class RaggedSource(MemorySource):
    """Pieces as a network brings them: of any length, in sixteens but at a cut."""

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        rng = np.random.default_rng(1)
        memory = np.empty(1 << 16, np.uint8)
        for start, end in pairwise(cuts):
            position = start
            while position < end:
                count = min(16 * int(rng.integers(1, 200)), end - position)
                memory[:count] = np.frombuffer(self.data, np.uint8, count, position)
                yield position, memory[:count]  # and the next one is written over it
                position += count


class Recorder:
    """A device that keeps the contents of its buffers, each named as its constant."""

    def __init__(self) -> None:
        self.written: dict[str, bytearray] = {}

    def write_buffer(self, buffer: Any, data: np.ndarray, offset: int = 0) -> None:
        assert offset % 4 == 0, "as WebGPU demands"
        held = self.written.setdefault(buffer, bytearray())
        held.extend(bytes(max(offset + data.nbytes - len(held), 0)))
        held[offset : offset + data.nbytes] = data.tobytes()

    def submit(self, plan: None, _: None, writes: Sequence[Write]) -> None:
        for write in writes:
            self.write_buffer(write.buffer, write.data, write.offset)

    async def finish_writes(self) -> None:
        pass


def upload_all(model: GgufModel, progress: Any = None) -> dict[str, bytes]:
    """Return the bytes by constant.

    Each goes to its own place and, once more, to one further on.
    """
    names = {name for _, _, name in model.program.constants()}
    places = {name: [_place(name, 0), _place(f"{name} again", ROOM)] for name in names}
    model.constants.check(model.program)
    recorder = Recorder()
    upload = model.constants.upload(cast(Device, recorder), places, Meter(progress))
    result_of(upload)
    for name in names:
        assert recorder.written[f"{name} again"][ROOM:] == recorder.written[name]
    return {name: bytes(recorder.written[name]) for name in names}


def _place(buffer: str, offset: int) -> Place:
    return Place(cast(Buffer, buffer), offset)


def opened(*sources: ByteSource) -> GgufModel:
    return result_of(open_model(sources))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pieces small, so that every tensor comes in several."""
    monkeypatch.setattr(constants, "HELD_BYTES", 3000)


def cases() -> Iterator[tuple[str, Kind]]:
    yield from (("llama with biases", kind) for kind in KINDS)
    yield from ((family, Kind.Q8_0) for family in FAMILIES if family != "llama with biases")


@pytest.mark.parametrize(("family", "kind"), list(cases()))
def test_they_are_the_exporter_s(family: str, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    write_gguf(path, family, FAMILIES[family], kind)
    model = opened(RaggedSource(path.read_bytes(), "x.gguf"))
    source = GgufSource.open(path, Quantisation("none"))
    names = sorted({name for _, _, name in model.program.constants()})
    wanted = source.constants(source.decoder_config(None), names)
    found = upload_all(model)
    assert found.keys() == wanted.keys()
    for name, give in wanted.items():
        assert found[name] == np.ascontiguousarray(give()).tobytes(), name


def test_parts_of_a_model(tmp_path: Path) -> None:
    tensors = small.tensors()
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    first = file(small.metadata() | split | {"split.no": 0}, tensors[:4])
    second = file(split | {"split.no": 1}, tensors[4:])
    whole = opened(MemorySource(small.small_file()))
    parts = opened(RaggedSource(second, "2"), RaggedSource(first, "1"))
    assert upload_all(parts) == upload_all(whole)


def test_progress_is_told_by_file() -> None:
    told: list[tuple[str, int, int]] = []
    model = opened(MemorySource(small.small_file(), "x.gguf"))
    upload_all(model, lambda *progress: told.append(progress))
    total = sum(len(tensor.data) for tensor in small.tensors())
    assert told[-1] == (UPLOAD, total, total)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "F16", "F32"])
def test_9_a_scale_that_is_no_number_names_its_tensor(kind: str, value: float) -> None:
    tensors = small.tensors(kind)
    spoilt = bytearray(tensors[7].data)
    number = np.float32(value) if kind == "F32" else np.float16(value)
    at = 1 * {"Q8_0": 34, "Q4_1": 20 + 2, "F16": 2, "F32": 4}[kind]
    spoilt[at : at + number.nbytes] = number.tobytes()
    tensors[7] = Tensor(tensors[7].name, tensors[7].dims, kind, bytes(spoilt))
    model = opened(MemorySource(file(small.metadata(), tensors), "x.gguf"))
    with pytest.raises(GgufError, match=r"x.gguf: the tensor 'blk.0.ffn_gate.weight' has values"):
        upload_all(model)


def test_a_program_that_wants_more_than_there_is() -> None:
    model = opened(MemorySource(small.small_file()))
    for name, dims, fault in (
        ("nothing", (1,), "needs the constant 'nothing', which is missing"),
        ("norm.weight", (5,), "takes 20 bytes, but its tensor gives 128"),
        ("cos", (2, 2), "but its table is not"),
    ):
        writer = ProgramWriter()
        value = next(v for _, v, n in model.program.constants() if n == "norm.weight")
        writer.declare_constant(name, dims, value.dtype)
        with pytest.raises(GraphError, match=fault):
            model.constants.check(writer.program())
