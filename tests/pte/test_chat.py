"""A decoder in a .pte beside a tokenizer is a model like any other, natively."""

import subprocess
import sys
from pathlib import Path

import pytest

from py_runtime.base.model_errors import ModelError, ModelFileError
from py_runtime.generation import pace
from py_runtime.model import Model
from tests.pte.counting import (
    MAX_POSITIONS,
    VOCABULARY,
    counting_decoder,
    doubling,
    unsupported_file,
    write_decoder,
)
from tests.runners import NativeRunner, wait
from tools.files import ROOT

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_decoder(tmp_path_factory.mktemp("models") / "Counting")


@pytest.fixture(scope="module")
def model(folder: Path, native: NativeRunner) -> Model:
    return wait(Model.load(native.device, str(folder)))


def test_it_says_what_it_is(model: Model) -> None:
    assert model.manifest.name == "Counting"
    assert model.vocabulary == len(VOCABULARY)
    assert model.max_chunk == MAX_POSITIONS - 1
    assert model.context == MAX_POSITIONS - 1
    assert {VOCABULARY[token] for token in model.end_tokens} == {"<|end|>"}


def test_it_answers_and_stops_where_it_should(model: Model) -> None:
    async def answer() -> tuple[str, str | None]:
        pieces = [p async for p in model.chat([{"role": "user", "content": "Hi"}], temperature=0)]
        return "".join(piece.text for piece in pieces), pieces[-1].finish_reason

    assert wait(answer()) == (ALPHABET, "stop")


def test_a_second_turn_reuses_the_first(model: Model) -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ALPHABET}]

    async def cached(messages: list[dict[str, str]]) -> int:
        pieces = [piece async for piece in model.chat(messages, temperature=0, max_tokens=2)]
        assert pieces[-1].usage
        return pieces[-1].usage.cached_tokens

    wait(cached(turns[:1]))
    assert wait(cached([*turns, {"role": "user", "content": "More"}])) > len("Hi")


def test_whole_logits_give_their_last_row_alone(model: Model) -> None:
    """The file gives [1, S, V]."""
    prompt = [VOCABULARY.index(character) for character in "sky"]
    logits = wait(model.prefill(prompt))
    assert VOCABULARY[int(logits.argmax())] == "z"
    (output,) = model.graph.program.outputs
    assert model.graph.live_dims(output) == (1, len(VOCABULARY))


def test_the_context_ends_before_the_exporters_last_position(model: Model) -> None:
    async def length() -> int:
        tokens = [token async for token in model.greedy([5], 10_000)]
        return len(tokens)

    assert wait(length()) == MAX_POSITIONS - 2


def test_many_steps_run_in_one_submit(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "BATCH_SECONDS", 60.0)  # however slow the machine is

    async def submits() -> float:
        pieces = [
            p async for p in model.complete([5], temperature=0, max_tokens=40, ignore_eos=True)
        ]
        assert pieces[-1].usage
        assert pieces[-1].usage.work
        return pieces[-1].usage.work.submits

    assert wait(submits()) < 0.7


def test_a_lone_file_is_named_after_itself(
    folder: Path, native: NativeRunner, tmp_path: Path
) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "counts.pte").write_bytes(counting_decoder())
    model = wait(Model.load(native.device, str(tmp_path / "counts.pte")))
    assert model.manifest.name == "counts"
    model.unload()


def test_a_tokenizer_must_be_there(native: NativeRunner, tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(counting_decoder())
    with pytest.raises(ModelFileError, match=r"no tokenizer.json beside model.pte"):
        wait(Model.load(native.device, str(tmp_path)))


def test_a_tokenizer_of_gigabytes_is_not_read(native: NativeRunner, tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(counting_decoder())
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(1_600_000_000)  # takes no room on the disk
    with pytest.raises(ModelFileError, match=r"tokenizer.json has 1.6 GB; at most 67.1 MB"):
        wait(Model.load(native.device, str(tmp_path)))


def test_a_folder_without_a_model_says_so(native: NativeRunner, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no model in"):
        wait(Model.load(native.device, str(tmp_path)))


def test_what_is_no_decoder_is_refused(native: NativeRunner, tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(doubling())
    with pytest.raises(ModelError, match="is not a decoder"):
        wait(Model.load(native.device, str(tmp_path)))


@pytest.mark.long
def test_the_terminal_tells_what_a_file_holds(folder: Path, tmp_path: Path) -> None:
    def inspect(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "inpage", "inspect", str(path)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    told = inspect(folder / "model.pte")
    assert told.returncode == 0
    for words in ("It can be loaded", "up to 1 × 255", "`aten.embedding.default` | 1", "38.4 kB"):
        assert words in told.stdout
    other = tmp_path / "other.pte"
    other.write_bytes(unsupported_file())
    told = inspect(other)
    assert told.returncode == 1
    for name in ("aten.convolution.default", "aten::cumsum", "XnnpackBackend"):
        assert name in told.stdout
    other.write_bytes(b"not a program")
    told = inspect(other)
    assert told.returncode == 1
    assert told.stderr.startswith("inpage: other.pte is not a .pte file: ")
    assert told.stderr.count("\n") == 1
