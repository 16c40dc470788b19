"""Addresses, the choice of a file, and what the Hub says, read without trust."""

import json
from typing import Any

import pytest

from py_runtime.base.errors import RequestError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ManifestError
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.folder.file_set import FileSet, parse_file_set
from py_runtime.gguf.projector_names import label_of, projector_for
from py_runtime.hub.address import HubAddress, parse_address
from py_runtime.hub.choice import choose, default_of, variants_of
from py_runtime.hub.errors import HubError, refusal
from py_runtime.hub.listing import HubFile, parse_about, parse_tree
from tools.files import ROOT

COMMIT = "0" * 40
SHA = "a" * 64
PLAIN = HubAddress("owner", "name")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hf:owner/name", PLAIN),
        (" owner/name ", PLAIN),
        ("hf:owner/name@v1.0", HubAddress("owner", "name", None, "v1.0")),
        ("hf:o/n/x.Q4_0.gguf@refs/pr/1", HubAddress("o", "n", "x.Q4_0.gguf", "refs/pr/1")),
        ("o/n/sub/x.GGUF", HubAddress("o", "n", "sub/x.GGUF")),
        ("https://huggingface.co/owner/name", PLAIN),
        ("https://huggingface.co/owner/name/tree/main", HubAddress("owner", "name", None, "main")),
        ("https://hf.co/o/n/blob/main/a%20b.gguf", HubAddress("o", "n", "a b.gguf", "main")),
        ("https://huggingface.co/o/n/resolve/v1/x.gguf?download=true",
         HubAddress("o", "n", "x.gguf", "v1")),
        ("huggingface.co/owner/name", PLAIN),
    ],
)  # fmt: skip
def test_addresses(text: str, wanted: HubAddress) -> None:
    assert parse_address(text) == wanted
    assert parse_address(str(wanted)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("", "name", "hf:", "hf:owner", "owner/", "../name", "owner/..", "o/n/../x.gguf"),
        *("o/n/x.bin", "o/n/.x.gguf", "o/n/a//x.gguf", "o/n@", "o/n@a b", "o/n/x\n.gguf"),
        *("https://example.org/owner/name", "javascript:x/y", "o/n\\x.gguf", "o w/n", "a" * 999),
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(RequestError, match="no model found at"):
        parse_address(text)


def files(*paths: str) -> list[HubFile]:
    return [HubFile(path, 100 + at, SHA) for at, path in enumerate(paths)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Llama-3.2-1B-Instruct-Q4_K_M", "Q4_K_M"),
        ("smollm2-135m-instruct-q8_0", "Q8_0"),
        ("x.UD-Q4_K_XL", "UD-Q4_K_XL"),
        ("x-IQ4_XS", "IQ4_XS"),
        ("x-BF16", "BF16"),
        ("Q4-model-f16", "F16"),
        ("gpt-oss-MXFP4_MOE", "MXFP4_MOE"),
        ("UNIQ4X", ""),
    ],
)
def test_labels(name: str, label: str) -> None:
    assert label_of(name) == label


def test_the_default_is_small_and_good() -> None:
    names = ("x-Q8_0.gguf", "x-Q2_K.gguf", "x-Q4_0.gguf", "x-UD-Q4_K_M.gguf", "x-Q4_K_M.gguf")
    for wanted, given in (("Q4_K_M", names), ("Q4_0", names[:3]), ("Q8_0", names[:2])):
        assert default_of(variants_of(files(*given))).quantisation == wanted
    assert default_of(variants_of(files("x-Q6_K.gguf", "x-F16.gguf"))).quantisation == "Q6_K"


def test_what_lies_beside_models_and_what_is_not_whole_is_none() -> None:
    parts = ["a/x-Q8_0-00001-of-00002.gguf", "a/x-Q8_0-00002-of-00002.gguf"]
    torn = "y-Q8_0-00001-of-00002.gguf"
    listed = files("mmproj-F16.gguf", "mtp-x.gguf", "imatrix.gguf", *reversed(parts), torn)
    (only,) = variants_of(listed)
    assert (only.name, [file.path for file in only.files]) == ("x-Q8_0", parts)
    assert only.size == sum(file.size for file in listed if file.path in parts)
    assert choose("o/n", [only], parts[1]) is only
    with pytest.raises(RequestError, match=r"o/n has no z.gguf; it has: a/x-Q8_0-00001"):
        choose("o/n", [only], "z.gguf")
    with pytest.raises(RequestError, match="o/n has no GGUF files"):
        choose("o/n", [], None)


def test_a_model_that_sees_comes_with_its_mmproj_file() -> None:
    names = ["SmolVLM-Q8_0.gguf", "SmolVLM-f16.gguf", "mmproj-SmolVLM-f16.gguf"]
    others = ["llava-1.6-7b-Q8_0.gguf", "mmproj-model-f16.gguf"]
    for folder in ("", "gguf/"):
        listed = [HubFile(folder + name, 10, "0" * 64) for name in (*names, *others)]
        found = {
            variant.name: [file.path for file in variant.files] for variant in variants_of(listed)
        }
        assert found["SmolVLM-Q8_0"] == [folder + names[0], folder + names[2]]
        assert found["llava-1.6-7b-Q8_0"] == [folder + others[0]], "its images cannot be read yet"


@pytest.mark.parametrize(
    ("model", "names", "is_alone", "wanted"),
    [
        ("A-1B-Q4_K_M.gguf", ["mmproj-A-1B-f16.gguf", "mmproj-A-1B-Q8_0.gguf"], False, 1),
        ("a-1b.gguf", ["mmproj-A-1B-BF16.gguf", "mmproj-B-f16.gguf"], False, 0),
        ("A-00001-of-00002.gguf", ["mmproj-A.gguf"], False, 0),
        ("A-Q8_0.gguf", ["mmproj-F16.gguf"], True, 0),
        ("A-Q8_0.gguf", ["mmproj-F16.gguf"], False, None),
        ("A-Q8_0.gguf", ["mmproj-B-f16.gguf", "A.gguf"], True, None),
    ],
)
def test_the_mmproj_file_of_a_model_is_known_by_its_name(
    model: str, names: list[str], is_alone: bool, wanted: int | None
) -> None:
    found = projector_for(model, names, is_alone)
    assert found == (None if wanted is None else names[wanted])


def test_what_the_hub_says() -> None:
    about = {"sha": COMMIT, "gated": "auto", "tags": ["gguf", 7, "license:mit"]}
    assert parse_about("o/n", json.dumps(about).encode()) == (COMMIT, "mit", True)
    lfs = {"oid": SHA, "size": 5, "pointerSize": 1}
    rows = [
        {"type": "file", "path": "x.gguf", "size": 5, "lfs": lfs},
        {"type": "file", "path": "README.md", "size": 5},
        {"type": "directory", "path": "x.gguf"},
        {"type": "file", "path": "../x.gguf", "lfs": lfs},
        "odd",
    ]
    assert parse_tree("o/n", json.dumps(rows).encode()) == [HubFile("x.gguf", 5, SHA)]


@pytest.mark.parametrize("data", [b"<html>", b"[]", b'{"sha": "main"}', b'{"sha": 7}', b"\xff"])
def test_odd_answers_about_a_model(data: bytes) -> None:
    with pytest.raises(HubError, match="what the Hub says of o/n cannot be used"):
        parse_about("o/n", data)


@pytest.mark.parametrize(
    "lfs", [None, {}, {"oid": "x", "size": 1}, {"oid": SHA, "size": -1}, {"oid": SHA}]
)
def test_a_file_without_a_hash_is_refused(lfs: Any) -> None:
    rows = json.dumps([{"type": "file", "path": "x.gguf", "size": 1, "lfs": lfs}]).encode()
    with pytest.raises(HubError, match=r"it tells no sha256 and size of 'x.gguf'"):
        parse_tree("o/n", rows)


@pytest.mark.parametrize(
    ("status", "headers", "token", "code", "words"),
    [
        (401, {}, False, "hub_access", "needs a token of yours"),
        (401, {}, True, "hub_access", "does not accept the token"),
        (403, {"x-error-code": "GatedRepo"}, False, "hub_access", "accept its terms"),
        (404, {"x-error-code": "EntryNotFound"}, False, "hub_error", "no such file: o/n"),
        (404, {"x-error-code": "RevisionNotFound"}, False, "hub_error", "no such revision: o/n"),
        (429, {"retry-after": "30"}, False, "hub_error", "wait 30 seconds"),
        (429, {"retry-after": "<b>"}, False, "hub_error", "wait some minutes"),
        (429, {"retry-after": "²"}, False, "hub_error", "wait some minutes"),
        (429, {"retry-after": "9" * 5000}, False, "hub_error", "wait some minutes"),
        (500, {}, False, "hub_error", "answered 500"),
    ],
)
def test_refusals_in_words(
    status: int, headers: dict[str, str], token: bool, code: str, words: str
) -> None:
    error = refusal(status, "o/n", headers, token)
    assert (error.code, error.facts()) == (code, {"status": status})
    assert words in str(error)


def test_the_shelf_offers_what_the_engine_knows() -> None:
    entries = json.loads((ROOT / "web" / "shelf.json").read_text())
    assert len(entries) > 5
    for entry in entries:
        assert entry.keys() == {"name", "address", "family", "size", "licence", "good_at"}
        assert entry["family"] in BY_MODEL_TYPE
        address = parse_address(entry["address"])
        assert (address.file, address.revision) == (None, None)
        assert address.name.endswith("-GGUF")
        assert entry["size"] > 1e7


def test_what_is_kept_of_a_model_is_read_back() -> None:
    kept = FileSet("x", {"b.gguf": FileFacts(1, SHA), "a.gguf": FileFacts(2, SHA)}, {"k": "v"})
    assert parse_file_set(kept.to_json()) == kept
    assert (list(parse_file_set(kept.to_json()).files), kept.size) == (["b.gguf", "a.gguf"], 3)


@pytest.mark.parametrize(
    "change",
    [
        *({"name": 1}, {"files": {}}, {"files": []}, {"files": {"x": [1]}}, {"notes": {"k": 1}}),
        *({"files": {"x": [1, "z"]}}, {"files": {"x": [-1, SHA]}}, {"more": 1}),
    ],
)
def test_what_cannot_be_read_back_is_refused(change: dict[str, Any]) -> None:
    sound = {"name": "x", "files": {"x": [1, SHA]}, "notes": {}}
    assert parse_file_set(json.dumps(sound).encode())
    with pytest.raises(ManifestError, match="what was kept of a model cannot be read"):
        parse_file_set(json.dumps(sound | change).encode())
