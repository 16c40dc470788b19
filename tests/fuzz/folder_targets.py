"""The files of a model folder, and the site's list of models."""

import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from safetensors import deserialize

from py_runtime.app.listing import parse_listing
from py_runtime.base.model_errors import ModelFileError
from py_runtime.folder.manifest import parse_manifest
from py_runtime.folder.safetensors_header import header_end, parse_safetensors_header
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.buffers import measure
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program.json_format import dump_program, load_program
from py_runtime.pte import open_pte
from tests.folder.small_model import (
    bytes_of_folder,
    open_bytes,
    safetensors_bytes,
    with_file,
    write_small,
)
from tests.fuzz.damage import damage_bytes
from tests.fuzz.documents import as_text, change_document, make_lie
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.graph.engine_graphs import decoder_like, norm_graph
from tests.pte.memory_source import MemorySource

# Exported decoders and modules with dynamic shapes: their graphs have many of the ops.
PTE_FILES = Path(__file__).parents[1] / "pte" / "files"
EXPORTED = ("caches_inside", "decoder_4w", "dynamic_rows", "integers", "q4_padded", "static_linear")


class Folder(dict[str, bytes]):
    def __missing__(self, name: str) -> bytes:
        raise ModelFileError(f"there is no {name}")


@cache
def sound_files() -> Folder:
    with TemporaryDirectory() as temporary:
        write_small(Path(temporary) / "small")
        return Folder(bytes_of_folder(Path(temporary) / "small"))


# The manifest ------------------------------------------------------------------------------------


def manifests() -> list[bytes]:
    return [sound_files()["manifest.json"]]


def read_manifest(data: bytes) -> None:
    parse_manifest(data)
    open_bytes(Folder(sound_files() | {"manifest.json": data}))


# The graph ---------------------------------------------------------------------------------------


def graphs() -> list[bytes]:
    programs = [norm_graph(2).program(), decoder_like()[0].program()]
    for name in EXPORTED:
        opened = result_of(open_pte(MemorySource((PTE_FILES / f"{name}.pte").read_bytes())))
        programs += [step.program for m in opened.methods.values() for step in m.delegates]
    fused = [run_passes(program, PORTABLE, DEFAULT_PASSES) for program in programs]
    return [dump_program(program).encode() for program in (*programs, *fused)]


def read_graph(data: bytes) -> None:
    """Read a graph with its passes, its ops' checks and the plan of its buffers."""
    measure(load_program(data))


# safetensors -------------------------------------------------------------------------------------


def tensor_files() -> list[bytes]:
    return [data for name, data in sound_files().items() if name.endswith(".safetensors")]


def change_header(rng: Random, base: bytes) -> bytes:
    """Change the bytes, or the JSON in the header, with the length right or wrong."""
    if rng.random() < 0.3:
        return damage_bytes(rng, base)
    end = 8 + int.from_bytes(base[:8], "little")
    return safetensors_bytes(
        as_text(rng, change_document(rng, json.loads(base[8:end]))), base[end:]
    )


def read_tensors(data: bytes) -> None:
    """Check that the library takes whatever is taken here."""
    end = header_end("x.safetensors", data[:8], len(data))
    parse_safetensors_header("x.safetensors", data[:end], len(data))
    deserialize(data)


# All of it together ------------------------------------------------------------------------------


def folder_files() -> list[bytes]:
    """Each as its name, a line break and its bytes."""
    files = sound_files()
    return [name.encode() + b"\n" + data for name, data in files.items() if name != "manifest.json"]


def change_file(rng: Random, base: bytes) -> bytes:
    name, _, data = base.partition(b"\n")
    if name.endswith(b".safetensors"):
        return name + b"\n" + change_header(rng, data)
    return name + b"\n" + make_lie(rng, data)


def read_folder(data: bytes) -> None:
    """Sizes and hashes are right, so that the damage reaches whoever puts the files together."""
    name, _, content = data.partition(b"\n")
    open_bytes(Folder(with_file(sound_files(), name.decode(), content)))


# The list of models ------------------------------------------------------------------------------


def listings() -> list[bytes]:
    counts = {"size": 1, "parameters": 2, "context": 3, "gpu_bytes": 4}
    whole = {"name": "A", "path": "models/A/", **counts}
    return [json.dumps([whole, {"name": "B", "path": "models/B/", "error": "no"}]).encode()]


def read_listing(data: bytes) -> None:
    for entry in parse_listing(data):
        assert isinstance(entry["name"], str)
        assert isinstance(entry["path"], str)


TARGETS = [
    Target("manifest", manifests, make_lie, read_manifest, count=300),
    Target("graph", graphs, make_lie, read_graph, count=300),
    Target("safetensors", tensor_files, change_header, read_tensors, count=300),
    Target("folder", folder_files, change_file, read_folder, count=400),
    Target("listing", listings, make_lie, read_listing, count=400),
]
