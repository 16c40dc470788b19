"""GGUF files, whole ones and ones in parts."""

from random import Random

from py_runtime.chat.template import ChatTemplate
from py_runtime.gguf.about import about_gguf
from py_runtime.gguf.encoder import is_encoder, read_encoder
from py_runtime.gguf.model import open_model
from py_runtime.gguf.reader import open_gguf
from py_runtime.tokens import Tokenizer
from tests.encoder.gguf_files import small_encoder
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import file
from tests.pte.memory_source import MemorySource

HEADER = 7500  # bytes of a file of these that come before its data, nearly


def files() -> list[bytes]:
    return [
        small.small_file(),
        file(small.metadata("qwen3") | small.sentence_pieces(), small.qwen3_tensors()),
        small_encoder(),
        small_encoder("nomic-bert"),
        file(small.metadata() | {"general.alignment": 64}, small.tensors("F16"), alignment=64),
    ]


def change(rng: Random, base: bytes) -> bytes:
    """Mostly the header: whatever its data is, a file is read."""
    return (
        damage_bytes(rng, base[:HEADER]) + base[HEADER:]
        if rng.random() < 0.8
        else damage_bytes(rng, base)
    )


def read_file(data: bytes) -> None:
    """Read all but the GPU: configuration, program, tokenizer, template, and the words for it."""
    source = MemorySource(data, "model.gguf")
    opened = result_of(open_gguf([source]))
    about_gguf(opened, "Read.")
    model = read_encoder(opened) if is_encoder(opened) else result_of(open_model([source]))
    tokenizer = Tokenizer.from_json(model.tokenizer["tokenizer.json"])
    tokenizer.decode(tokenizer.encode("the end"))
    config = model.tokenizer["tokenizer_config.json"]
    if "chat_template" in config:
        ChatTemplate.from_config(config).render([{"role": "user", "content": "the"}])
    assert source.bytes_read <= 3 * len(data), "no byte is read again and again"


TARGETS = [Target("gguf", files, change, read_file, count=500)]
