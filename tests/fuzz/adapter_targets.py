"""Adapters: PEFT's two files, and GGUF's; and safetensors files of any make."""

import json
from random import Random

from py_runtime.adapters.files import MemorySource
from py_runtime.adapters.gguf import read_gguf_adapter
from py_runtime.adapters.peft import read_peft
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.folder.plain_safetensors import read_safetensors, write_safetensors
from py_runtime.gguf.reader import open_gguf
from tests.adapters.written import gguf_adapter, peft_config, peft_tensors, random_factors
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of

LINEARS = {"layers.0.self_attn.q_proj": (32, 16), "layers.1.mlp.down_proj": (16, 32)}
HEADER = 700  # bytes of these files that come before their data, nearly
APART = b"\n\0\n"  # between PEFT's two files
FACTORS = random_factors(LINEARS, 4, 1)
SOUND = write_safetensors(peft_tensors(FACTORS), {"format": "pt"})


def change(rng: Random, base: bytes) -> bytes:
    return (
        damage_bytes(rng, base[:HEADER]) + base[HEADER:]
        if rng.random() < 0.8
        else damage_bytes(rng, base)
    )


def peft_files() -> list[bytes]:
    configs = [peft_config(4, 8), peft_config(4, 8, alpha_pattern={"q_proj": 2}, use_rslora=True)]
    return [json.dumps(config).encode() + APART + SOUND for config in configs]


def read_two_files(data: bytes) -> None:
    config, _, weights = data.partition(APART)
    adapter = read_peft(config, weights, BY_MODEL_TYPE["llama"], "adapter.safetensors")
    adapter.updates(0, LINEARS, 8)


def gguf_files() -> list[bytes]:
    return [gguf_adapter(FACTORS, 8, 8), gguf_adapter(FACTORS, 0, 0, "qwen2")]


def read_gguf(data: bytes) -> None:
    file = result_of(open_gguf([MemorySource("adapter.gguf", data)]))
    result_of(read_gguf_adapter(file, 8)).updates(0, LINEARS, 8)


def read_tensors(data: bytes) -> None:
    tensors = read_safetensors("x.safetensors", data)
    for name in tensors.stored:
        tensors.floats(name)


TARGETS = [
    Target("adapter of peft", peft_files, change, read_two_files, count=3000),
    Target("adapter in gguf", gguf_files, change, read_gguf, count=3000),
    Target("plain safetensors", lambda: [SOUND], change, read_tensors, count=3000),
]
