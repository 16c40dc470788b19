"""Manifests that lie, as raw bytes: each fault has its own text."""

import json
from collections.abc import Callable

import pytest

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import (
    DAMAGED,
    ManifestError,
    ModelError,
    ModelFileError,
    ModelHashError,
    ModelVersionError,
)
from py_runtime.folder.manifest import (
    MAX_MANIFEST_BYTES,
    Manifest,
    Requirements,
    Source,
    parse_manifest,
)
from tests.json_lies import Document, drop, put
from tools.models import MANIFEST_FIELDS

ZEROS, ONES = "0" * 64, "1" * 64
HONEST: Document = {
    "format": "inpage-model",
    "version": 1,
    "name": "Small",
    "parameters": 7,
    "context": 8,
    "size": 30,
    "gpu_bytes": 100,
    "quantisation": "none",
    "graph": "graph.json",
    "weights": ["w.safetensors"],
    "goldens": None,
    "files": {
        "graph.json": {"size": 10, "sha256": ZEROS},
        "w.safetensors": {"size": 20, "sha256": ONES},
    },
    "requires": {
        "features": ["subgroups"],
        "limits": {"max_buffer_size": 16, "max_storage_buffer_binding_size": 16},
    },
    "source": {"name": "Nobody/Small", "url": None, "licence": "apache-2.0"},
    "created_by": "inpage 0.1.0",
}


def name_fault(name: str) -> tuple[Callable[[Document], None], str]:
    return put(
        "graph", name
    ), f"manifest.json.graph must be a plain .json or .safetensors name, got {name!r}"


LIES = {
    "no format": (drop("format"), "manifest.json has no 'format'"),
    "no version": (drop("version"), "manifest.json has no 'version'"),
    "version no integer": (
        put("version", True),
        "manifest.json.version must be an integer from 0 to 2^53 - 1, got True",
    ),
    "no name": (drop("name"), "manifest.json has no 'name'"),
    "empty name": (put("name", ""), "manifest.json.name must be a text, got ''"),
    "parameters": (
        put("parameters", 1.5),
        "manifest.json.parameters must be an integer from 0 to 2^53 - 1, got 1.5",
    ),
    "negative context": (
        put("context", -1),
        "manifest.json.context must be an integer from 0 to 2^53 - 1, got -1",
    ),
    "unsafe integer": (
        put("gpu_bytes", 2**53),
        "manifest.json.gpu_bytes must be an integer from 0 to 2^53 - 1, got 9007199254740992",
    ),
    "way up": name_fault("../graph.json"),
    "two dots": name_fault(".."),
    "separator": name_fault("a/b"),
    "backslash": name_fault("a\\b"),
    "dotfile": name_fault(".env"),
    "drive": name_fault("c:x"),
    "newline": name_fault("graph.json\n"),
    "a page": name_fault("index.html"),
    "a page to some hosts": name_fault("graph.html.json"),
    "no ending": name_fault("graph"),
    "weights no list": (
        put("weights", "w.safetensors"),
        "manifest.json.weights must be a list, got 'w.safetensors'",
    ),
    "weights no name": (
        put("weights", [7]),
        "manifest.json.weights[0] must be a plain .json or .safetensors name, got 7",
    ),
    "weights twice": (
        put("weights", ["w.safetensors", "w.safetensors"]),
        "manifest.json.weights names a file twice",
    ),
    "goldens": (
        put("goldens", "/goldens"),
        "manifest.json.goldens must be a plain .json or .safetensors name, got '/goldens'",
    ),
    "graph not listed": (drop("files", "graph.json"), "manifest.json.files has no 'graph.json'"),
    "weights not listed": (
        put("weights", ["v.safetensors"]),
        "manifest.json.files has no 'v.safetensors'",
    ),
    "goldens not listed": (
        put("goldens", "g.safetensors"),
        "manifest.json.files has no 'g.safetensors'",
    ),
    "files no object": (put("files", []), "manifest.json.files must be an object, got []"),
    "file name": (
        put("files", "../x", {}),
        "a key of manifest.json.files must be a plain .json or .safetensors name, got '../x'",
    ),
    "file no object": (
        put("files", "graph.json", 10),
        "manifest.json.files.graph.json must be an object, got 10",
    ),
    "file without size": (
        drop("files", "graph.json", "size"),
        "manifest.json.files.graph.json has no 'size'",
    ),
    "short hash": (
        put("files", "graph.json", "sha256", "00"),
        "manifest.json.files.graph.json.sha256 must be 64 lower-case hex digits, got '00'",
    ),
    "no hex hash": (
        put("files", "graph.json", "sha256", "g" * 64),
        f"manifest.json.files.graph.json.sha256 must be 64 lower-case hex digits, got '{'g' * 64}'",
    ),
    "lists itself": (
        put("files", "manifest.json", {"size": 0, "sha256": ZEROS}),
        "manifest.json.files lists the manifest itself",
    ),
    "gigabytes beside the weights": (
        put("files", "graph.json", "size", 1_600_000_000),
        "manifest.json.files has 1.6 GB beside the weights; at most 67.1 MB are read",
    ),
    "size": (
        put("size", 31),
        "manifest.json.size is 31, but the files take 30 bytes together",
    ),
    "features": (
        put("requires", "features", [3]),
        "manifest.json.requires.features[0] must be a text, got 3",
    ),
    "limits": (
        put("requires", "limits", None),
        "manifest.json.requires.limits must be an object, got None",
    ),
    "a limit missing": (
        drop("requires", "limits", "max_buffer_size"),
        "manifest.json.requires.limits has no 'max_buffer_size'",
    ),
    "a limit": (
        put("requires", "limits", "max_bind_groups", "4"),
        "manifest.json.requires.limits.max_bind_groups must be an integer from 0 to 2^53 - 1, got "
        "'4'",
    ),
    "source": (put("source", "x"), "manifest.json.source must be an object, got 'x'"),
    "licence": (drop("source", "licence"), "manifest.json.source has no 'licence'"),
    "script as address": (
        put("source", "url", "javascript:alert(1)"),
        "manifest.json.source.url must be an http or https address, got 'javascript:alert(1)'",
    ),
}
RAW_FAULTS = {
    "empty": (b"", "manifest.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "cap": (
        b" " * (MAX_MANIFEST_BYTES + 1),
        "manifest.json has 1048577 bytes; at most 1048576",
    ),
    "UTF-8": (b'{"\xc3\x28"', "manifest.json is not JSON: byte 2 is not UTF-8"),
    "UTF-16": ("{}".encode("utf-16"), "manifest.json is not JSON: byte 0 is not UTF-8"),
    "double key": (
        b'{"format": "inpage-model", "format": "inpage-model"}',
        "manifest.json is not JSON: the key 'format' appears twice in one object",
    ),
    "NaN": (b'{"size": NaN}', "manifest.json is not JSON: NaN is not a JSON number"),
    "no object": (b"[]", "manifest.json must be an object, got []"),
}
FOREIGN = {
    "format": (
        put("format", "gguf"),
        "manifest.json is of format 'gguf', not 'inpage-model'; use a folder that inpage "
        "export wrote",
    ),
    "newer": (
        put("version", 2),
        "manifest.json is of format version 2; this engine reads version 1; update inpage",
    ),
    "older": (
        put("version", 0),
        "manifest.json is of format version 0; this engine reads version 1; export the model again",
    ),
}


def with_lie(lie: Callable[[Document], None]) -> bytes:
    document = json.loads(json.dumps(HONEST))
    lie(document)
    return json.dumps(document).encode()


def check_fault(data: bytes, kind: type[ModelError], text: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_manifest(data)
    assert (type(caught.value), str(caught.value)) == (kind, text)


@pytest.mark.parametrize("case", LIES)
def test_a_lie(case: str) -> None:
    lie, text = LIES[case]
    check_fault(with_lie(lie), ManifestError, f"{text}; {DAMAGED}")


@pytest.mark.parametrize("case", RAW_FAULTS)
def test_a_raw_fault(case: str) -> None:
    data, text = RAW_FAULTS[case]
    check_fault(data, ManifestError, f"{text}; {DAMAGED}")


@pytest.mark.parametrize("case", FOREIGN)
def test_another_format_or_version(case: str) -> None:
    lie, text = FOREIGN[case]
    check_fault(with_lie(lie), ModelVersionError, text)


def test_an_honest_manifest_with_keys_of_later_days() -> None:
    assert parse_manifest(with_lie(put("mood", "good"))) == Manifest(
        name="Small",
        parameters=7,
        context=8,
        size=30,
        gpu_bytes=100,
        quantisation="none",
        graph="graph.json",
        weights=("w.safetensors",),
        goldens=None,
        files={"graph.json": FileFacts(10, ZEROS), "w.safetensors": FileFacts(20, ONES)},
        requires=Requirements(
            ("subgroups",), {"max_buffer_size": 16, "max_storage_buffer_binding_size": 16}
        ),
        source=Source("Nobody/Small", None, "apache-2.0"),
        created_by="inpage 0.1.0",
    )


def test_files_that_are_not_as_exported() -> None:
    manifest = parse_manifest(json.dumps(HONEST).encode())
    with pytest.raises(ModelFileError) as size:
        manifest.check_file("graph.json", b"123456789")
    assert str(size.value) == f"graph.json has 9 bytes, but the manifest says 10; {DAMAGED}"
    with pytest.raises(ModelHashError) as sha256:
        manifest.check_file("graph.json", b"1234567890")
    assert str(sha256.value) == (
        "graph.json is not the file that was exported: its sha256 is "
        "c775e7b757ede630cd0aa1113bd102661ab38829ca52a6422ab782862f268646, but the manifest says "
        f"{ZEROS}; {DAMAGED}"
    )


def test_the_list_of_models_shows_fields_that_manifests_have() -> None:
    assert set(MANIFEST_FIELDS) <= set(HONEST)
