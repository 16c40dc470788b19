"""Checkpoints of text encoders: all their files, one behind the other."""

from random import Random

from py_runtime.adapters.files import MemorySource
from py_runtime.encoder.encoding import MODULES, SETTINGS
from py_runtime.folder.file_names import CONFIG, SAFETENSORS, TOKENIZER, VOCABULARY
from py_runtime.model.checkpoint_store import CheckpointStore
from py_runtime.tokens import Tokenizer
from py_runtime.weights.byte_source import MissingFileError
from tests.encoder.gguf_files import small_checkpoint
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of

APART = b"\n\0\n"
POOLING = "1_Pooling/config.json"
NAMES = (CONFIG, VOCABULARY, MODULES, POOLING, SETTINGS, SAFETENSORS)
HEADER = 5000  # bytes that come before the weights, nearly


class Files:
    """Files by their names; others are missing."""

    def __init__(self, data: bytes) -> None:
        self._files = dict(zip(NAMES, data.split(APART, len(NAMES) - 1), strict=False))

    def find(self, name: str) -> MemorySource:
        return MemorySource(name, self._files[name]) if name in self._files else Missing(name, b"")


class Missing(MemorySource):
    """A file that is not there."""

    async def size(self) -> int:
        raise MissingFileError(f"{self.name} is not there")


def checkpoints() -> list[bytes]:
    files = small_checkpoint()
    return [APART.join(files[name] for name in NAMES)]


def change(rng: Random, base: bytes) -> bytes:
    return damage_bytes(rng, base[:HEADER]) + base[HEADER:]


def read_checkpoint(data: bytes) -> None:
    """Read all but the weights: configuration, program, tokenizer, and how it asks to be used."""
    store = CheckpointStore("small", Files(data).find)
    folder = result_of(store.open())
    folder.encoding.prompt(None)
    store.constants(folder).check(folder.program)
    tokenizer = Tokenizer.from_json(result_of(store.read(folder, TOKENIZER)))
    tokenizer.decode(tokenizer.encode("the end"))


TARGETS = [Target("encoder", checkpoints, change, read_checkpoint, count=750)]
