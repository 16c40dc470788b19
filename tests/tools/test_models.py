"""The folder of models: what of it is served, and how each model is listed."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.tools.small_site import GRAPH, WEIGHTS, make_site, write_files, write_model
from tools.compress import VariantStore
from tools.models import ModelsError
from tools.site import Site
from tools.static_build import build

ODD_NAMES = ("a#b", "what?", "100%", "50%25", "two words", "Größe", "模型", "a&b=c;d+e", "'q'\"")


def models_of(site: Site) -> Path:
    assert site.models.root
    return site.models.root


def entry(site: Site, name: str) -> dict[str, Any]:
    (found,) = (entry for entry in site.models.listing() if entry["name"] == name)
    return found


def served(site: Site, name: str) -> set[str]:
    """Return the served files of a model; the description and the answers agree."""
    prefix = f"models/{name}/"
    listed = {url.removeprefix(prefix) for url in site.urls() if url.startswith(prefix)}
    folder = models_of(site) / name
    on_disk = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert {file for file in on_disk | {"../tiny/graph.json"} if site.find(prefix + file)} == listed
    return listed


# ---- what is served


PROGRAM = {"model.pte": b"1234", "model.ptd": b"5", "tokenizer.json": b"{}", "config.json": b"{}"}


def test_a_folder_with_an_executorch_program_is_a_model(site: Site) -> None:
    stray = {"x.html": b"no", "other.ptd": b"no", "x.html.pte": b"no", "notes.json": b"no"}
    write_files(models_of(site) / "stock", {**PROGRAM, **stray})
    assert entry(site, "stock") == {"name": "stock", "path": "models/stock/model.pte", "size": 4}
    assert served(site, "stock") == PROGRAM.keys()


def test_further_programs_have_their_data_beside_them(site: Site) -> None:
    further = {"small_2-b.pte": b"1", "small_2-b.ptd": b"2", "tokenizer_config.json": b"{}"}
    write_files(models_of(site) / "stock", {**PROGRAM, **further})
    assert served(site, "stock") == PROGRAM.keys() | further.keys()


# ---- text encoders


ENCODER = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": b"12345",
    "vocab.txt": b"[UNK]",
    "tokenizer_config.json": b"{}",
    "modules.json": b"""[
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}
    ]""",
}
INNER = {"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"}


def test_a_text_encoders_checkpoint_is_a_model(site: Site) -> None:
    folder = models_of(site) / "encoder"
    stray = {"x.html": b"no", "README.md": b"no", "pytorch_model.bin": b"no"}
    write_files(folder, {**ENCODER, **stray})
    write_files(folder / "1_Pooling", {"config.json": b"{}", "x.html": b"no"})
    write_files(folder / "2_Dense", {"config.json": b"{}", "model.safetensors": b"1"})
    write_files(folder / "3_Dense", {"config.json": b"{}"})
    assert entry(site, "encoder") == {"name": "encoder", "path": "models/encoder/", "size": 5}
    assert served(site, "encoder") == ENCODER.keys() | INNER
    assert all(site.find(f"models/encoder/{file}") for file in INNER)
    for file in (
        "1_Pooling/x.html",
        "1_Pooling/model.safetensors",
        "3_Dense/config.json",
        "../tiny/graph.json",
    ):
        assert site.find(f"models/encoder/{file}") is None


def test_other_checkpoints_are_none(site: Site) -> None:
    write_files(models_of(site) / "other", {**ENCODER, "config.json": b'{"model_type": "llama"}'})
    write_files(models_of(site) / "bare", {"config.json": ENCODER["config.json"]})
    names = {entry["name"] for entry in site.models.listing()}
    assert not names & {"other", "bare"}
    assert site.find("models/other/model.safetensors") is None


# ---- GGUF files


def lone(site: Site, name: str, data: bytes = b"GGUF") -> None:
    (models_of(site) / name).write_bytes(data)


@pytest.mark.parametrize(
    "name", ["plain.gguf", "Llama-3.2-1B-Instruct-Q4_K_M.gguf", "x.Q4_1.gguf", "tiny.F16.gguf"]
)
def test_a_gguf_beside_the_folders_is_a_model(site: Site, name: str) -> None:
    lone(site, name)
    model = name.removesuffix(".gguf")
    assert entry(site, model) == {"name": model, "path": f"models/{name}", "size": 4}
    assert f"models/{name}" in set(site.urls())
    found = site.find(f"models/{name}")
    assert found is not None
    assert (found.media_type, found.read()) == ("application/octet-stream", b"GGUF")


def test_parts_of_a_gguf_are_one_model(site: Site) -> None:
    lone(site, "big-00001-of-00002.gguf", b"12")
    assert "big-00002-of-00002.gguf is missing" in entry(site, "big")["error"]
    lone(site, "big-00002-of-00002.gguf", b"345")
    wanted = {"name": "big", "path": "models/big-00001-of-00002.gguf", "size": 5}
    assert entry(site, "big") == wanted
    assert site.find("models/big-00002-of-00002.gguf")


@pytest.mark.parametrize("name", ["x.html.gguf", "x.php.gguf", "a b.gguf", "x.svg.gguf", "ü.gguf"])
def test_a_gguf_whose_name_some_host_would_heed(site: Site, name: str) -> None:
    lone(site, name)
    assert "named in a way that no GGUF file is" in entry(site, name.removesuffix(".gguf"))["error"]
    assert site.find(f"models/{name}") is None
    assert f"models/{name}" not in set(site.urls())


def test_a_link_to_a_gguf_is_not_followed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"not for the web")
    (models_of(site) / "x.gguf").symlink_to(tmp_path / "secret")
    assert "x.gguf is missing, unreadable, a link" in entry(site, "x")["error"]
    assert site.find("models/x.gguf") is None


def test_other_files_beside_the_folders_are_none(site: Site) -> None:
    before = site.models.listing()
    for name in ("x.pte", "x.safetensors", "x.json", ".x.gguf", "gguf"):
        lone(site, name)
        assert site.find(f"models/{name}") is None
    assert site.models.listing() == before


@pytest.mark.parametrize(
    "name",
    [
        *("index.html", "x.svg", "x.js", "x.mjs", "x.css", "x.xml", "x.xhtml", "x.wasm", "x.pdf"),
        *("x.html.json", "x.json.html", "x.HTML", "x", "x.", ".json", ".htaccess", "x.php.json"),
        *("../secret.txt", "/etc/passwd", "sub/x.json", "..", "a\\b.json", "x.json\n", "x?.json"),
    ],
)
def test_a_hostile_name_in_a_manifest(site: Site, name: str) -> None:
    write_model(models_of(site) / "evil", {"graph.json": GRAPH})
    path = models_of(site) / "evil" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["files"][name] = {"size": 0, "sha256": "0" * 64}
    path.write_text(json.dumps(manifest))
    if "/" not in name and name != "..":
        write_files(models_of(site) / "evil", {name: b""})
    assert "must be a plain .json or .safetensors name" in entry(site, "evil")["error"]
    assert served(site, "evil") == {"manifest.json"}
    assert site.find(f"models/evil/{name}") is None


def test_a_link_among_the_files_is_not_followed(site: Site, tmp_path: Path) -> None:
    write_model(models_of(site) / "evil", {"graph.json": GRAPH, "secret.json": b"not for the web"})
    (models_of(site) / "evil" / "secret.json").unlink()
    (models_of(site) / "evil" / "secret.json").symlink_to(tmp_path / "secret.txt")
    assert "secret.json is missing, unreadable or a link" in entry(site, "evil")["error"]
    assert served(site, "evil") == {"manifest.json", "graph.json"}


# ---- models.json


def test_one_bad_model_hides_no_other(site: Site) -> None:
    root = models_of(site)
    write_files(
        root, {"deep/manifest.json": b"[" * 200_000, "huge/manifest.json": b" " * 2_000_000}
    )
    write_files(root, {"binary/manifest.json": b"\xff\xfe", "list/manifest.json": b"[]"})
    write_model(root / "newer", {"graph.json": GRAPH}, version=2)
    write_model(root / "counts", {"graph.json": GRAPH}, parameters="many")
    write_model(root / "partial", {"graph.json": GRAPH, "w.safetensors": WEIGHTS})
    (root / "partial" / "w.safetensors").unlink()
    write_model(root / "short", {"graph.json": GRAPH, "w.safetensors": WEIGHTS})
    (root / "short" / "w.safetensors").write_bytes(WEIGHTS[:-1])
    (root / "loop").mkdir()
    (root / "loop" / "manifest.json").symlink_to("manifest.json")
    (root / "folder" / "manifest.json").mkdir(parents=True)
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "manifest.json")
    write_model(root / "back\\slash", {"graph.json": GRAPH})
    write_model(root / os.fsdecode(b"no-text-\xff"), {"graph.json": GRAPH})

    resource = site.find("models.json")
    assert resource
    listed = {entry["name"]: entry for entry in json.loads(resource.read())}
    faults = {name: entry.get("error", "") for name, entry in listed.items()}
    assert faults.pop("tiny") == ""
    for name, words in {
        "deep": "nested too deeply",
        "huge": "has 1048577 bytes",
        "binary": "is not JSON: byte 0 is not UTF-8",
        "list": "must be an object",
        "newer": "update inpage",
        "counts": "parameters must be an integer",
        "partial": "w.safetensors is missing",
        "short": "w.safetensors has 999 bytes, but the manifest says 1000",
        "loop": "manifest.json is missing, unreadable or a link",
        "folder": "manifest.json is missing, unreadable or a link",
        "pipe": "manifest.json is missing, unreadable or a link",
        "linked": "it is a link",
        "torn": "is not JSON",
        "back\\slash": "rename it",
        "no-text-\\udcff": "rename it",
    }.items():
        assert words in faults.pop(name)
    assert faults == {}


def test_a_build_tells_of_models_with_faults(site: Site, tmp_path: Path) -> None:
    build(site, tmp_path / "out", VariantStore(tmp_path / "cache"))
    listed = json.loads((tmp_path / "out" / "models.json").read_bytes())
    assert listed == site.models.listing()
    assert [entry["name"] for entry in listed if "error" in entry] == ["linked", "torn"]


def test_a_folder_of_models_that_has_gone(site: Site, tmp_path: Path) -> None:
    models_of(site).rename(tmp_path / "moved")
    with pytest.raises(ModelsError, match=r"the folder of models cannot be read: .*No such file"):
        site.find("models.json")
    assert site.find("models/tiny/manifest.json") is None


def test_an_edited_manifest_is_read_anew(site: Site) -> None:
    assert "more.safetensors" not in served(site, "tiny")
    write_model(models_of(site) / "tiny", {"graph.json": GRAPH, "more.safetensors": WEIGHTS})
    assert served(site, "tiny") == {"manifest.json", "graph.json", "more.safetensors"}


# ---- names of folders


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_folder_s_name_may_have_any_printable_character(tmp_path: Path, name: str) -> None:
    site = make_site(tmp_path)
    write_model(models_of(site) / name, {"graph.json": GRAPH})
    listed = entry(site, name)
    assert listed["path"] == f"models/{quote(name)}/"
    assert "error" not in listed
    assert served(site, name) == {"manifest.json", "graph.json"}
    build(site, tmp_path / "out", VariantStore(tmp_path / "cache"))
    assert (tmp_path / "out" / unquote(listed["path"]) / "graph.json").read_bytes() == GRAPH
