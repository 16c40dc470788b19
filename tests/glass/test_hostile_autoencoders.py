"""Files of sparse autoencoders that lie, lack something or want what nobody computes."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.glass.autoencoders import autoencoder as module
from py_runtime.glass.autoencoders.autoencoder import Autoencoder, load_autoencoder
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.glass.autoencoders.files import SAFETENSORS
from tests.glass.written_autoencoders import NAME, autoencoder_files, random_tensors
from tests.runners import wait

WIDTH, FEATURES = 8, 12


def loaded(where: Any) -> Autoencoder:
    return wait(load_autoencoder(where))


def changed(layout: str = "saelens", **tensors: np.ndarray | None) -> dict[str, bytes]:
    """Return an autoencoder's files in which some tensors are others, or missing."""
    whole = {**random_tensors(layout, WIDTH, FEATURES), **tensors}
    data = write_safetensors({name: each for name, each in whole.items() if each is not None})
    return {**autoencoder_files(layout, WIDTH, FEATURES), NAME: data}


def with_header(**facts: Any) -> dict[str, bytes]:
    """Return a file whose header says something else of W_enc."""
    (data,) = (autoencoder_files("gemma scope", WIDTH, FEATURES)[NAME],)
    length = int.from_bytes(data[:8], "little")
    members = json.loads(data[8 : 8 + length])
    members["W_enc"] |= facts
    text = json.dumps(members).encode()
    return {NAME: len(text).to_bytes(8, "little") + text + data[8 + length :]}


def npz(write: Any = np.savez, **tensors: Any) -> bytes:
    """Return an .npz file of Gemma Scope's layout, in which some arrays are others."""
    given = io.BytesIO()
    write(given, **{**random_tensors("gemma scope", WIDTH, FEATURES), **tensors})
    return given.getvalue()


def lying(data: bytes, before: bytes, after: bytes) -> bytes:
    assert before in data
    assert len(before) == len(after)
    return data.replace(before, after)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (npz(np.savez_compressed), "'W_enc' is compressed: save the file again with numpy.savez"),
        (npz(W_enc=np.asfortranarray(np.zeros((8, 12)))), "'W_enc' is not a plain array of floats"),
        (npz(W_enc=np.zeros((8, 12), ">f4")), "'W_enc' is not a plain array of floats"),
        (npz(W_enc=np.array([{}], object)), "'W_enc' is not a plain array of floats"),
        (npz(W_dec=np.zeros((12, 9), np.float32)), r"W_dec is \[12, 9\], but must be \[12, 8\]"),
        (npz(b_dec=np.full(8, np.inf, np.float32)), "b_dec' has values that are infinite"),
        (lying(npz(), b"(8, 12)", b"(8, 99)"), r"'W_enc' is \[8, 99\], but has 384 bytes"),
        (lying(npz(), b"(8, 12)", b"(-8,12)"), "'W_enc' has the shape"),
        (lying(npz(), b"'descr'", b"exec(0)"), "'W_enc' has no header that numpy can read"),
        (lying(npz(), b"b_dec.npy", b"b_enc.npy"), "'b_enc' is there twice"),
        (npz()[:-30], "is not an .npz file: it has no directory"),
        (npz()[100:], "is not where the directory says|would not fit in it"),
        (b"", "is not an .npz file"),
    ],
)
def test_an_npz_file_is_read_without_trust(data: bytes, said: str) -> None:
    with pytest.raises(AutoencoderError, match=said):
        loaded({"params.npz": data})


def test_an_npz_file_is_read_as_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "average_l0_71"
    folder.mkdir()
    (folder / "params.npz").write_bytes(npz())
    wanted = loaded({NAME: autoencoder_files("gemma scope", WIDTH, FEATURES)[NAME]})
    x = np.random.default_rng(0).normal(size=(3, WIDTH)).astype(np.float32)
    for where in (folder, folder / "params.npz", {"params.npz": npz()}):
        found = loaded(where)
        np.testing.assert_array_equal(wait(found.encode(x)), wait(wanted.encode(x)))
    assert (loaded(folder).name, loaded(folder).kind) == ("average_l0_71", "JumpReLU")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (changed(W_enc=None), "no sparse autoencoder of a known layout.*'b_enc'"),
        (changed(b_dec=None), "b_dec is missing, but must be .8."),
        (changed(b_enc=np.zeros(11)), r"b_enc is \[11\], but must be \[12\]"),
        (changed(W_dec=np.zeros((12, 9))), r"W_dec is \[12, 9\], but must be \[12, 8\]"),
        (changed(W_enc=np.zeros(8)), r"W_enc is \[8\]"),
        (changed(W_enc=np.zeros((0, 12))), r"W_enc is \[0, 12\]"),
        (changed(b_dec=np.full(8, np.nan)), "b_dec' has values that are infinite or not numbers"),
        (changed("saelens, jumprelu", threshold=None), "threshold is missing"),
        (changed("saelens, gated", r_mag=np.zeros((12, 1))), r"r_mag is \[12, 1\]"),
        (changed("eleuther", **{"encoder.bias": None}), "encoder.bias is missing"),
        (with_header(shape=[1 << 40, 1 << 40]), "W_enc' has the shape"),
        (with_header(shape=[9, 12]), "spans 384 bytes: get the file again"),
        (with_header(data_offsets=[1 << 30, (1 << 30) + 384]), "leaves a hole or overlaps"),
        (with_header(dtype="F7"), "unknown dtype"),
        ({NAME: b""}, "has 0 bytes"),
        ({NAME: b"\xff" * 400}, "its header would not fit in it"),
        ({NAME: (8).to_bytes(8, "little") + b"[1,2,3,]"}, "header is not"),
        ({NAME: write_safetensors({})}, "it has none"),
        ({}, "nothing was given as a sparse autoencoder"),
        ({"a.safetensors": b"", "b.safetensors": b""}, "give one .safetensors or .npz file"),
        ({**changed(), "cfg.json": b"{"}, "cfg.json: "),
        ({**changed(), "cfg.json": b"[]"}, "cfg.json: no object"),
        ({**changed(), "cfg.json": b" " * (1 << 21)}, "cfg.json: 2097152 >"),
        ({NAME: changed("eleuther")[NAME]}, "cfg.json says how many: give both files together"),
    ],
)
def test_a_file_that_is_no_autoencoder_says_why(files: dict[str, bytes], said: str) -> None:
    with pytest.raises(AutoencoderError, match=said):
        loaded(files)


@pytest.mark.parametrize(
    "config",
    [
        {"architecture": "matryoshka"},
        {"architecture": ["topk"]},
        {"activation_fn_str": "tanh-relu"},
        {"normalize_activations": "by luck"},
        {"normalize_activations": {}},
        {"apply_b_dec_to_input": 1},
        {"hook_head_index": 3},
        {"finetuning_scaling_factor": True},
        {"hf_hook_point_in": "model.layers.0.output", "hf_hook_point_out": "elsewhere"},
        {"d_in": 9},
        {"metadata": {"skip_connection": True}},
    ],
)
def test_what_is_not_understood_is_refused_by_its_name(config: dict[str, Any]) -> None:
    key = list(config)[-1].replace("metadata", "skip_connection")
    with pytest.raises(AutoencoderError, match=f"says {key} = "):
        loaded(autoencoder_files("saelens", WIDTH, FEATURES, **config))


@pytest.mark.parametrize("kept", [0, 13, -1, 2.5, "7", True, None])
def test_a_number_of_features_that_cannot_be_kept(kept: Any) -> None:
    with pytest.raises(AutoencoderError, match=r"cfg\.json says how many"):
        loaded(autoencoder_files("eleuther", WIDTH, FEATURES, k=kept))


def test_numbers_that_are_none_are_found_where_they_are_read() -> None:
    encoder = random_tensors("saelens", WIDTH, FEATURES)["W_enc"]
    encoder[3, 4] = np.inf
    found = loaded(changed(W_enc=encoder))
    with pytest.raises(AutoencoderError, match="'W_enc' has values that are infinite"):
        wait(found.encode(np.zeros((2, WIDTH), np.float32)))


def test_numbers_that_are_too_large_are_refused() -> None:
    found = loaded(changed(W_enc=np.full((WIDTH, FEATURES), 3e38, np.float32)))
    with pytest.raises(AutoencoderError, match="too large to compute with"):
        wait(found.encode(np.full((2, WIDTH), 2, np.float32)))


def test_a_text_that_is_too_long_says_how_much_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 4 * FEATURES * 3)
    found = loaded(autoencoder_files("saelens", WIDTH, FEATURES))
    assert len(wait(found.encode(np.zeros((3, WIDTH), np.float32)))) == 3
    with pytest.raises(RequestError, match=r"5 tokens are too many .* at most 3"):
        wait(found.encode(np.zeros((5, WIDTH), np.float32)))


@pytest.mark.parametrize("feature", [-1, FEATURES, 1.0, "3", None, True])
def test_a_feature_that_there_is_not(feature: Any) -> None:
    found = loaded(autoencoder_files("saelens", WIDTH, FEATURES))
    with pytest.raises(RequestError, match="numbers from 0 to 11"):
        wait(found.direction(feature))


def test_metadata_of_the_file_serve_as_its_configuration() -> None:
    tensors = random_tensors("saelens", WIDTH, FEATURES)
    facts = {"hook_name": "blocks.3.hook_mlp_out", "architecture": "topk", "k": "5"}
    found = loaded(write_safetensors(tensors, {**facts, "apply_b_dec_to_input": "False"}))
    assert (found.hook, found.kind, found.layout.kept) == ("blocks.3.hook_mlp_out", "TopK", 5)
    assert not found.layout.takes_bias_off


def test_a_folder_names_the_hook_of_eleuthers(tmp_path: Path) -> None:
    folder = tmp_path / "layers.10.mlp"
    folder.mkdir()
    for name, data in autoencoder_files("eleuther", WIDTH, FEATURES).items():
        (folder / name).write_bytes(data)
    (folder / f"sparsity{SAFETENSORS}").write_bytes(write_safetensors({}))
    for where in (folder, str(folder / NAME)):
        found = loaded(where)
        assert found.name == "layers.10.mlp"
        assert found.hook == "blocks.10.hook_mlp_out"
    assert repr(found) == "<layers.10.mlp: 12 features of blocks.10.hook_mlp_out, TopK>"


def test_blocks_give_the_same_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(4, WIDTH)).astype(np.float32)
    for layout in ("saelens", "eleuther"):
        found = loaded(autoencoder_files(layout, WIDTH, FEATURES))
        whole = wait(found.encode(x))
        rebuilt = wait(found.decode(whole, x))
        with monkeypatch.context() as patch:
            patch.setattr("py_runtime.glass.autoencoders.tensors.BLOCK_BYTES", 100)
            np.testing.assert_allclose(wait(found.encode(x)), whole, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(wait(found.decode(whole, x)), rebuilt, rtol=1e-5, atol=1e-6)
