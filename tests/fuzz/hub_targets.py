"""The Hub's answers, what was kept of its models, and what users write to name them."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from inpage.listing import in_folder
from py_runtime.base.errors import InpageError
from py_runtime.base.file_facts import FileFacts
from py_runtime.folder.file_set import FileSet, parse_file_set
from py_runtime.hub.address import parse_address
from py_runtime.hub.choice import choose, default_of, variants_of
from py_runtime.hub.listing import parse_about, parse_tree
from tests.fuzz.damage import damage_bytes
from tests.fuzz.documents import make_lie
from tests.fuzz.driver import Target
from tests.growth import count_steps
from tools.models import Models

SHA, COMMIT = "ab" * 32, "cd" * 20


def answers() -> list[bytes]:
    names = ("x-Q4_K_M.gguf", "a/x-Q8_0-00001-of-00002.gguf", "a/x-Q8_0-00002-of-00002.gguf")
    lfs = {"oid": SHA, "size": 7, "pointerSize": 130}
    tree = [{"type": "file", "path": name, "size": 7, "oid": COMMIT, "lfs": lfs} for name in names]
    about = {"id": "o/n", "sha": COMMIT, "gated": False, "tags": ["gguf", "license:mit"]}
    kept = FileSet("x", {name: FileFacts(7, SHA) for name in names}, {"revision": "main"})
    return [json.dumps(tree).encode(), json.dumps(about).encode(), kept.to_json()]


def read_answer(data: bytes) -> None:
    """Read an answer as each of the three: what one refuses, another may read."""
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


# Listings of many files --------------------------------------------------------------------------

# What the names of files are told apart by, in all orders and numbers.
NAME_PARTS = (
    *(
        "-00001-of-65535",
        "-00002-of-65535",
        "-65535-of-65535",
        "-00001-of-00002",
        "-00002-of-00002",
    ),
    *(
        "-00000-of-00000",
        "-99999-of-99999",
        ".gguf",
        ".GGUF",
        "-of-",
        "-00001",
        "a/",
        "mmproj",
        "m",
    ),
    *("-Q4_K_M", "UD-", "IQ4", "_XXS", "_K", "-", "0", "é"),
)
MAX_NAMES = 60
STEPS_PER_BYTE = 10  # of the interpreter; sound readers take about 3
LEAST_STEPS = 10_000


def trees() -> list[bytes]:
    return [tree_of(["x-Q4_K_M.gguf", "a/x-00001-of-00002.gguf", "a/x-00002-of-00002.gguf"])]


def tree_of(names: Iterable[str]) -> bytes:
    lfs = {"oid": SHA, "size": 7}
    return json.dumps([{"type": "file", "path": name, "lfs": lfs} for name in names]).encode()


def many_names(rng: Random, base: bytes) -> bytes:
    """Make a tree whose names are grown from their own parts, or one that lies."""
    if rng.random() < 0.3:
        return make_lie(rng, base)
    few = rng.sample(NAME_PARTS, rng.randint(1, 4))
    return tree_of(
        "".join([f"m{at}" if rng.random() < 0.7 else "m", *rng.choices(few, k=rng.randint(0, 6))])
        + rng.choice(("", "-00001-of-65535", f"-{at + 1:05}-of-65535"))
        + ".gguf"
        for at in range(rng.randint(1, MAX_NAMES))
    )


def offer_tree(data: bytes) -> None:
    """Check that choosing among a repository's files takes steps that grow with the listing."""

    def offer() -> None:
        variants = variants_of(parse_tree("o/n", data))
        assert not variants or choose("o/n", variants, variants[-1].files[-1].path).size >= 0

    count_steps(offer, LEAST_STEPS + STEPS_PER_BYTE * len(data))


def list_folder(data: bytes) -> None:
    """List the same names in a folder of models, as a site and as `inpage.models()` do."""
    files = parse_tree("o/n", data)
    with TemporaryDirectory() as folder:
        for file in files:
            with suppress(OSError):  # a name that no file can have, or one of two
                (Path(folder) / file.path).write_bytes(b"")
        most = LEAST_STEPS * (1 + len(files))  # of paths, which take many
        count_steps(lambda: in_folder(folder), most)
        count_steps(lambda: Models(Path(folder)).listing(), most)


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
    Target("hub_answer", answers, make_lie, read_answer, count=400),
    Target("hub_listing", trees, many_names, offer_tree, count=80),
    Target("folder_listing", trees, many_names, list_folder, count=20),
    Target("hub_address", addresses, damage_bytes, read_address, count=300),
]
