"""GGUF files as models: torch's logits and greedy tokens, natively and in the page."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from export.default_model import default_gguf
from export.gguf_source import GgufSource
from export.reference import greedy, last_logits, reference_decoder
from export.sources import Quantisation
from py_runtime.base.errors import GpuOutOfMemoryError, InpageError
from py_runtime.folder.on_disk import DiskFolder
from py_runtime.model import Model
from py_runtime.model.stores import open_store
from tests.decoder.test_program import Canonical
from tests.export.gguf_files import write_gguf
from tests.gguf import small
from tests.gguf.test_constants import upload_all
from tests.gguf.written import file
from tests.golden import Tolerance, compare
from tests.runners import NativeRunner, Runner, wait
from tools.files import ROOT

pytestmark = pytest.mark.torch

CASES = [
    ("llama 2", "llama", Kind.F16),
    ("mistral", "llama", Kind.Q8_0),
    ("qwen2.5", "qwen2", Kind.Q4_1),
    ("qwen3", "qwen3", Kind.Q4_0),
]
STEPS = 12
CLEAR_MARGIN = 1e-3  # below it torch's own next token is a coin's toss
PROMPT = [5, 100, 7, 200, 31, 8, 300, 9, 44]
CLOSE = Tolerance(1e-3, 1e-5)


@pytest.mark.thorough_in_page
@pytest.mark.parametrize(("family", "architecture", "kind"), CASES)
def test_torch_s_tokens(
    family: str, architecture: str, kind: Kind, tmp_path: Path, runner: Runner
) -> None:
    check_tokens(family, architecture, kind, tmp_path, runner)


def check_tokens(
    family: str,
    architecture: str,
    kind: Kind,
    folder: Path,
    runner: Runner,
    tolerance: Tolerance = CLOSE,
) -> None:
    path = folder / "x.gguf"
    write_gguf(path, family, architecture, kind)
    source = GgufSource.open(path, Quantisation("none"))
    decoder = reference_decoder(source, source.decoder_config(None))
    tokens, margins = greedy(decoder, PROMPT, STEPS)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    found = runner.run("tests.gguf.in_runtime", "answer", data=data, prompt=PROMPT, steps=STEPS)
    wanted = last_logits(decoder, PROMPT).astype(np.float64)
    compare(family, found["logits"], wanted, tolerance)
    clear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), STEPS)
    assert clear > 3, "a case that compares next to nothing"
    assert found["tokens"][:clear] == tokens[:clear]
    assert found["again"] == found["tokens"], "built anew, as after the loss of a device"
    assert (found["ends"], found["name"], found["left"]) == ([2], "x", 0)


# Natively, from a path ---------------------------------------------------------------------------


def test_parts_are_found_beside_each_other(tmp_path: Path, native: NativeRunner) -> None:
    tensors = small.tensors()
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    for number, (values, given) in enumerate([(small.metadata(), tensors[:5]), ({}, tensors[5:])]):
        data = file(values | split | {"split.no": number}, given)
        (tmp_path / f"big-0000{number + 1}-of-00002.gguf").write_bytes(data)
    model = wait(Model.load(native.device, str(tmp_path / "big-00002-of-00002.gguf")))
    assert model.manifest.name == "big"
    assert model.manifest.quantisation == "Q8_0"
    assert model.manifest.source.licence == "mit"
    model.unload()


def test_a_part_that_is_not_there(tmp_path: Path, native: NativeRunner) -> None:
    (tmp_path / "big-00001-of-00002.gguf").write_bytes(small.small_file())
    with pytest.raises(InpageError, match=r"big-00002-of-00002.gguf cannot be read: No such file"):
        wait(Model.load(native.device, str(tmp_path / "big-00001-of-00002.gguf")))


def test_nothing_is_left_of_a_file_with_a_bad_tensor(tmp_path: Path, native: NativeRunner) -> None:
    (tmp_path / "x.gguf").write_bytes(small.spoilt_file())
    before = native.device.counters.buffer_bytes_alive
    with pytest.raises(InpageError, match=r"'blk.0.ffn_down.weight' has values that are infinite"):
        wait(Model.load(native.device, str(tmp_path / "x.gguf")))
    assert native.device.counters.buffer_bytes_alive == before


def test_a_matrix_beyond_the_device_s_limits(
    tmp_path: Path, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.gguf").write_bytes(small.small_file())
    limits = native.device.limits | {"max_storage_buffer_binding_size": 1000}
    monkeypatch.setattr(native.device, "limits", limits)
    with pytest.raises(GpuOutOfMemoryError, match=r"x needs a GPU buffer of 8.4 kB"):
        wait(Model.load(native.device, str(tmp_path / "x.gguf")))


def test_10_a_template_that_never_ends_is_stopped(tmp_path: Path, native: NativeRunner) -> None:
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    data = small.small_file(**{"tokenizer.chat_template": endless})
    (tmp_path / "x.gguf").write_bytes(data)
    model = wait(Model.load(native.device, str(tmp_path / "x.gguf")))
    with pytest.raises(InpageError, match="template"):
        model.chat_tokens([{"role": "user", "content": "the"}])
    model.unload()


def test_11_no_token_beyond_the_rows_is_looked_up(tmp_path: Path, native: NativeRunner) -> None:
    """None is drawn either, however its logit is pushed: there are as many logits as rows."""
    (tmp_path / "x.gguf").write_bytes(small.small_file())
    model = wait(Model.load(native.device, str(tmp_path / "x.gguf")))

    async def drawn(prompt: list[int], **fields: Any) -> list[int]:
        pieces = model.complete(prompt, max_tokens=20, ignore_eos=True, **fields)
        return [token async for piece in pieces for token in piece.token_ids]

    for token in (small.VOCABULARY, -1, 2**40):
        with pytest.raises(InpageError, match=rf"the prompt holds {token}, not a token from 0 to"):
            wait(drawn([1, token]))
    with pytest.raises(InpageError, match="logit_bias must have token ids from 0 to"):
        wait(drawn([1], logit_bias={small.VOCABULARY: 100}))
    assert set(wait(drawn([1], temperature=2, seed=1))) < set(range(small.VOCABULARY))
    model.unload()


@pytest.mark.long
def test_the_terminal_tells_what_a_file_holds(tmp_path: Path) -> None:
    def inspect(data: bytes) -> subprocess.CompletedProcess[str]:
        (tmp_path / "x.gguf").write_bytes(data)
        command = [sys.executable, "-m", "inpage", "inspect", str(tmp_path / "x.gguf")]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    told = inspect(small.small_file())
    assert told.returncode == 0
    for words in ("It can be loaded", "| Q8_0 | 8 |", "`llama.block_count` | `1` |", "261 × text"):
        assert words in told.stdout
    told = inspect(small.small_file(**{"llama.expert_count": 8}))
    assert told.returncode == 1
    assert "**It cannot be loaded**: x.gguf: its metadata 'llama.expert\\_count'" in told.stdout
    told = inspect(b"not a model")
    assert told.returncode == 1
    fault = "is not a GGUF file: it does not begin with 'GGUF'; copy or download the file again"
    assert told.stderr == f"inpage: x.gguf {fault}\n", "the file is named once"


# The default model -------------------------------------------------------------------------------


@pytest.mark.model
def test_the_default_model_is_the_exported_folder_bit_for_bit() -> None:
    """It answers token for token alike, then: the same program over the same bytes."""
    folder = DiskFolder(ROOT / "models" / "SmolLM2-135M-Instruct")
    exported = wait(folder.open())
    store = wait(open_store(str(default_gguf())))
    opened = wait(store.open())
    assert Canonical(opened.program).whole() == Canonical(exported.program).whole()
    assert opened.manifest.context == exported.manifest.context
    model: Any = wait(store.model())  # type: ignore[attr-defined]
    found, wanted = upload_all(model), folder.constants(exported)
    assert found.keys() == set(wanted)
    for name in wanted:
        array = np.asarray(wanted[name])
        if name in ("cos", "sin"):
            table = np.frombuffer(found[name], np.float32).reshape(array.shape)
            np.testing.assert_allclose(table, array, atol=2e-4)
        else:
            assert found[name] == array.tobytes(), name
    for part in ("tokenizer.json", "tokenizer_config.json"):
        ours, theirs = wait(store.read(opened, part)), json.loads(wait(folder.read(exported, part)))
        assert isinstance(ours, dict)
        assert with_merges_in_two(ours) == with_merges_in_two(theirs)


def with_merges_in_two(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Write merges in pairs; tokenizer.json knows both ways of writing them."""
    model = tokenizer.get("model", {})
    merges = [m.split(" ") if isinstance(m, str) else m for m in model.get("merges", ())]
    return tokenizer | {"model": model | {"merges": merges}}
