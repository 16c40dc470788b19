"""What the Hub says, what was kept of its models, and what users write to name them."""

import json

from py_runtime.base.errors import InpageError
from py_runtime.folder.file_set import FileSet, parse_file_set
from py_runtime.folder.manifest import FileFacts
from py_runtime.hub.address import parse_address
from py_runtime.hub.choice import default_of, variants_of
from py_runtime.hub.listing import parse_about, parse_tree
from tests.fuzz.damage import damaged
from tests.fuzz.documents import lied
from tests.fuzz.driver import Target

SHA, COMMIT = "ab" * 32, "cd" * 20


def answers() -> list[bytes]:
    names = ("x-Q4_K_M.gguf", "a/x-Q8_0-00001-of-00002.gguf", "a/x-Q8_0-00002-of-00002.gguf")
    lfs = {"oid": SHA, "size": 7, "pointerSize": 130}
    tree = [{"type": "file", "path": name, "size": 7, "oid": COMMIT, "lfs": lfs} for name in names]
    about = {"id": "o/n", "sha": COMMIT, "gated": False, "tags": ["gguf", "license:mit"]}
    kept = FileSet("x", {name: FileFacts(7, SHA) for name in names}, {"revision": "main"})
    return [json.dumps(tree).encode(), json.dumps(about).encode(), kept.to_json()]


def read_answer(data: bytes) -> None:
    """As each of the three: what one refuses, another may read."""
    refused: list[InpageError] = []
    for read in (read_tree, read_about, read_kept):
        try:
            read(data)
        except InpageError as error:
            refused.append(error)
    if len(refused) == 3:
        raise refused[0]


def read_tree(data: bytes) -> None:
    variants = variants_of(parse_tree("o/n", data))
    assert not variants or default_of(variants).size >= 0


def read_about(data: bytes) -> None:
    commit, licence, _ = parse_about("o/n", data)
    assert len(commit) == len(COMMIT)
    assert len(licence) <= 64


def read_kept(data: bytes) -> None:
    assert parse_file_set(data).size >= 0


def addresses() -> list[bytes]:
    texts = (
        "hf:owner/name/sub/file.Q4_K_M.gguf@refs/pr/1",
        "https://huggingface.co/owner/name/resolve/main/a%20b.gguf?download=true",
        "owner/name@v1.0",
    )
    return [text.encode() for text in texts]


def read_address(data: bytes) -> None:
    found = parse_address(data.decode("utf-8", "surrogateescape"))
    assert parse_address(str(found)) == found, "it is spelt as it is read"
    assert ".." not in (found.file or "").split("/")


TARGETS = [
    Target("hub_answer", answers, lied, read_answer, count=400),
    Target("hub_address", addresses, damaged, read_address, count=600),
]
