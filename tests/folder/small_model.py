"""A model that fits a page of paper, as a program, as a folder and as raw bytes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from export.model_writer import ModelFacts, write_model
from py_runtime.base.dtypes import F32
from py_runtime.folder.layout import ModelFolder, combine_model
from py_runtime.folder.manifest import Manifest, Source, parse_manifest
from py_runtime.folder.safetensors_header import header_end, parse_safetensors_header
from py_runtime.program.writer import ProgramWriter

ROWS, WIDTH, VOCABULARY = 3, 40, 60
FACTS = ModelFacts(
    name="Small",
    parameters=2400,
    context=8,
    gpu_bytes=12_000,
    max_buffer_size=9600,
    max_storage_buffer_binding_size=9600,
    source=Source("Nobody/Small", "https://example.org/small", "apache-2.0"),
    quantisation="none",
    features=("subgroups",),
)
FILES = {"config.json": b'{"hidden_size": 40}', "tokenizer.json": b'{"model": {}}'}
GOLDENS: dict[str, np.ndarray] = {"logits": np.arange(5, dtype=np.float32), "ids": np.arange(3)}


def small_program() -> ProgramWriter:
    """Write out = mask ? x : table[indices]: an f32, an i64 and a bool constant."""
    random = np.random.default_rng(0)
    table = random.standard_normal((VOCABULARY, WIDTH), np.float32)
    writer = ProgramWriter("small")
    x = writer.input("x", (ROWS, WIDTH), F32)
    table_ref = writer.constant("table", table)
    indices = writer.constant("indices", np.array([59, 0, 7]))
    mask = writer.constant("mask", random.random(WIDTH) < 0.5)
    looked_up = writer.tensor((ROWS, WIDTH), F32)
    writer.op("aten.embedding.default", table_ref, indices, -1, False, False, looked_up)
    out = writer.tensor((ROWS, WIDTH), F32)
    writer.op("aten.where.self", mask, x, looked_up, out)
    writer.output(out)
    return writer


def small_result(x: np.ndarray) -> np.ndarray:
    constants = small_program().constants
    return np.where(constants["mask"], x, constants["table"][constants["indices"]])


def write_small(folder: Path, **options: Any) -> Manifest:
    writer = small_program()
    arguments: dict[str, Any] = {
        "constants": writer.constants,
        "facts": FACTS,
        "files": FILES,
        "goldens": GOLDENS,
        "shard_size": 4096,
        **options,
    }
    return write_model(folder, writer.program(), **arguments)


def bytes_of_folder(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def open_bytes(files: dict[str, bytes]) -> ModelFolder:
    """Open the files as the page does: the manifest, then the sizes, then ranges of the files."""
    manifest = parse_manifest(files["manifest.json"])
    headers = {}
    for name in (*manifest.weights, *filter(None, [manifest.goldens])):
        size = manifest.files[name].size
        manifest.check_size(name, len(files[name]))
        end = header_end(name, files[name][:8], size)
        headers[name] = parse_safetensors_header(name, files[name][:end], size)
    return combine_model(manifest, files[manifest.graph], headers)


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    """Write a file of any header: JSON of an object, or the bytes as they are."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 16)
    return len(text).to_bytes(8, "little") + text + data


def with_file(files: dict[str, bytes], name: str, data: bytes) -> dict[str, bytes]:
    """Return the folder with another file in it, and a manifest that says so."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest["size"] = sum(entry["size"] for entry in manifest["files"].values())
    return {**files, name: data, "manifest.json": json.dumps(manifest).encode()}
