"""Checks for tests of loading in the page: answers, files that are kept, shards of the toy."""

from typing import Any

from tests.folder.conftest import LoadingPage

MANIFEST = {"Toy/manifest.json"}


def shard(number: int) -> str:
    return f"weights-{number:05}-of-00012.safetensors"


def check_refused(page: LoadingPage, result: dict[str, Any], code: str, *words: str) -> None:
    assert result["error"] is not None, "it was loaded"
    assert result["error"][0] == code
    for word in words:
        assert word in result["error"][1]
    assert result["buffers left"] == 0
    assert not [name for name in page.run("entries") if name.startswith("partial-")]


def entry_of(manifest: dict[str, Any], file: str) -> str:
    return f"file-{manifest['files'][file]['sha256']}"


def kept_files(page: LoadingPage, manifest: dict[str, Any]) -> set[str]:
    entries = page.run("entries")
    return {f"Toy/{file}" for file in manifest["files"] if entry_of(manifest, file) in entries}


def all_files(manifest: dict[str, Any], model: str = "Toy") -> set[str]:
    return {f"{model}/{file}" for file in manifest["files"]}
