"""GGUF files, whole ones and ones in parts."""

from py_runtime.gguf.reader import open_gguf
from tests.fuzz.damage import damaged
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import file
from tests.pte.memory_source import MemorySource


def files() -> list[bytes]:
    return [
        small.small_file(),
        file(small.metadata("qwen2"), small.tensors("Q4_0")),
        file(small.metadata() | {"general.alignment": 64}, small.tensors("F16"), alignment=64),
    ]


def read_file(data: bytes) -> None:
    source = MemorySource(data, "model.gguf")
    result_of(open_gguf([source]))
    assert source.bytes_read <= len(data), "no byte is read again"


TARGETS = [Target("gguf", files, damaged, read_file, count=10_000)]
