"""`inpage export`: folders that load, and one clear line with status 2 for every bad source."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from export.architectures import decoder_config, read_config, rotary_tables
from export.command import main
from export.decoder import Decoder
from export.errors import ExportError
from export.sources import HuggingFaceSource, Quantisation, all_ends, read_json
from py_runtime.decoder.families import FAMILIES
from py_runtime.folder.on_disk import open_model_folder, verify_files
from py_runtime.model import Model
from tests.export.checkpoints import save_checkpoint
from tests.export.gguf_files import write_gguf
from tests.runners import NativeRunner, in_a_thread, wait
from tools.files import ROOT

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny-qwen"
    save_checkpoint(folder, "qwen2.5")
    return folder


@pytest.fixture
def broken(checkpoint: Path, tmp_path: Path) -> Path:
    """Make a copy to break."""
    return Path(shutil.copytree(checkpoint, tmp_path / "broken"))


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "tiny"
    assert main([str(checkpoint), "-o", str(out), "--max-seq-len", "96"]) == 0
    return out


def test_help_has_examples_and_every_family(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "examples: inpage export default -o models/" in text
    assert [family.known_as for family in FAMILIES if family.known_as not in text] == []


def test_a_checkpoint_becomes_a_model_that_runs(exported: Path, native: NativeRunner) -> None:
    """The folder's own goldens hold natively: logits and greedy tokens are torch's."""
    manifest = verify_files(exported)
    assert (manifest.name, manifest.context) == ("tiny-qwen", 96)
    assert manifest.goldens is not None
    from safetensors.numpy import load_file

    goldens = load_file(exported / manifest.goldens)

    async def check() -> None:
        model = await Model.load(native.device, str(exported))
        for length in (1, 7, 64):
            got = await model.prefill(goldens[f"tokens_{length}"].tolist())
            wanted = goldens[f"logits_{length}"].astype(np.float64)
            relative = np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean())
            assert relative < 1e-5, f"{length} tokens: {relative}"
        model.unload()

    wait(check())


def test_gpu_bytes_are_what_the_engine_takes(exported: Path, native: NativeRunner) -> None:
    before = native.device.counters.buffer_bytes_alive

    async def bytes_taken() -> int:
        model = await Model.load(native.device, str(exported))
        taken = native.device.counters.buffer_bytes_alive - before
        model.unload()
        return taken

    facts = open_model_folder(exported).manifest
    # Uniform slots may lie closer together on a device with a finer alignment.
    assert 0.9 * facts.gpu_bytes <= wait(bytes_taken()) <= facts.gpu_bytes


@pytest.mark.thorough  # the next test verifies, too, in this process
def test_the_whole_command_with_verify(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "verified"
    command = [sys.executable, "-m", "inpage", "export", str(checkpoint), "-o", str(out)]
    command += ["--verify", "--max-seq-len", "96"]  # as far as the perplexity is computed
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = ("parameters", "GPU memory", "layers", "64 random tokens", "greedy tokens", "perplexity")
    for words in rows:
        assert words in done.stderr
    same, total = map(int, re.findall(r"(\d+) of (\d+) as torch's", done.stderr)[0])
    assert same == total > 0


def test_verify_of_a_model_that_differs_is_one_line_and_status_1(
    checkpoint: Path,
    tmp_path: Path,
    native: NativeRunner,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Torch gets another weight than the folder: as bad as the other way round."""
    from export import verify
    from export.reference import reference_decoder

    def other_decoder(*arguments: Any, **options: Any) -> Decoder:
        decoder = reference_decoder(*arguments, **options)
        decoder.layers[1].mlp.down_proj.weight *= 1.05
        return decoder

    monkeypatch.setattr(verify, "reference_decoder", other_decoder)
    out = tmp_path / "other"
    command = [str(checkpoint), "-o", str(out), "--max-seq-len", "96", "--verify"]
    assert in_a_thread(main, command) == 1
    *table, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"{out} differs from torch: layers.1, the first of 2 layers, by ")
    assert "; the logits after 64 tokens by " in line
    assert "relative RMS" in " ".join(table)


def test_dry_run_writes_nothing(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "nothing"
    assert main([str(checkpoint), "-o", str(out), "--dry-run"]) == 0
    assert not out.exists()
    assert "dry run: nothing was written" in capsys.readouterr().err


def test_small_shards(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "sharded"
    assert main([str(checkpoint), "-o", str(out), "--shard-size", "32K"]) == 0
    manifest = verify_files(out)
    assert len(manifest.weights) > 2
    assert all((out / name).stat().st_size <= 32 << 10 for name in manifest.weights)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def rewrite(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


def configure(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **values}))

    return change


def truncate(name: str, keep: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:keep])

    return change


WEIGHTS = "model.safetensors"
FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no config": (remove("config.json"), "has no config.json"),
    "config not JSON": (rewrite("config.json", "{"), "config.json cannot be read"),
    "config not an object": (rewrite("config.json", "[]"), "config.json is not a JSON object"),
    "no tokenizer": (remove("tokenizer.json"), "has no tokenizer.json"),
    "unknown architecture": (
        configure(model_type="mamba"),
        "the architecture 'mamba' is not supported; these are: exaone, exaone4, falcon_h1, gemma, ",
    ),
    "quantised already": (
        configure(quantization_config={"quant_method": "fp8"}),
        "this checkpoint is quantised already; give the float one, or a GGUF",
    ),
    "config of other kinds": (configure(tie_word_embeddings="abc"), "config.json cannot be read"),
    "a width in words": (
        configure(hidden_size="abc"),
        "hidden_size must be an integer from 1 to 65536, got 'abc'",
    ),
    "no heads": (
        configure(num_attention_heads=0),
        "num_attention_heads must be an integer from 1 to 4096, got 0",
    ),
    "unknown activation": (configure(hidden_act="gelu"), "the activation 'gelu' is not supported"),
    "no weights": (remove(WEIGHTS), "has no .safetensors file (pickled checkpoints are never"),
    "truncated weights": (truncate(WEIGHTS, 5000), "is not a safetensors file"),
    "missing tensors": (
        configure(num_hidden_layers=3, layer_types=None),
        "'layers.2.self_attn.q_proj.weight' is missing",
    ),
    "wrong shapes": (
        configure(intermediate_size=192),
        "'layers.0.mlp.gate_proj.weight' has the shape [160, 64], not [192, 64]",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_checkpoint_is_one_line_and_status_2(
    fault: str, broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, words = FAULTS[fault]
    change(broken)
    out = tmp_path / "out"
    assert main([str(broken), "-o", str(out)]) == 2
    printed = capsys.readouterr().err
    line = printed.strip().splitlines()[-1]
    assert line.startswith("error: ")
    assert words in line
    assert "Traceback" not in printed
    assert not out.exists()


def test_bad_gguf_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.gguf"
    write_gguf(good, "smollm2", "llama", Kind.Q4_0)
    whole = good.read_bytes()
    out = tmp_path / "out"
    files = {
        "truncated": whole[: len(whole) // 2],
        "header only": whole[:99],
    }
    for name, data in files.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(data)
        assert main([str(path), "-o", str(out)]) == 2, name
        assert "is not a whole GGUF file" in capsys.readouterr().err
    assert main([str(tmp_path / "absent.gguf"), "-o", str(out)]) == 2
    assert "there is no file" in capsys.readouterr().err
    write_gguf(tmp_path / "lying.gguf", "smollm2", "llama", Kind.Q4_0, claimed_layers=3)
    assert main([str(tmp_path / "lying.gguf"), "-o", str(out)]) == 2
    assert "'blk.2.attn_q.weight' is missing" in capsys.readouterr().err
    write_gguf(tmp_path / "gpt.gguf", "smollm2", "unheard-of", Kind.Q4_0)
    assert main([str(tmp_path / "gpt.gguf"), "-o", str(out)]) == 2
    assert "the architecture 'unheard-of' is not supported" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"num_hidden_layers": 10**8}, "num_hidden_layers must be an integer from 1 to 512"),
        ({"head_dim": 0}, "head_dim must be an integer from 1 to"),
        ({"hidden_size": -4}, "hidden_size must be an integer from 1 to"),
        ({"vocab_size": 2.5}, "vocab_size must be an integer from 1 to"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps must be a number above 0, got nan"),
        ({"rms_norm_eps": 0}, "rms_norm_eps must be a number above 0, got 0"),
        ({"rope_theta": 10**300}, "rope_theta must be a number above 0, got 1000"),
        ({"rope_theta": 0.0}, "rope_theta must be a number above 0, got 0.0"),
        ({"rope_parameters": {"rope_theta": float("inf")}}, "rope_theta must be a number above 0"),
    ],
)
def test_sizes_that_no_model_has(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ExportError) as caught:
        read_config({"model_type": "llama", **values})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("rope", "words"),
    [
        ({"rope_type": "linear", "factor": "two"}, "rotary positions cannot be computed: "),
        ({"rope_type": "linear", "factor": 1e-320}, "rotary positions are not finite"),
    ],
)
def test_rotary_positions_that_no_model_has(rope: dict[str, Any], words: str) -> None:
    config = read_config({"model_type": "llama", "rope_scaling": {"rope_theta": 1e4, **rope}})
    with pytest.raises(ExportError, match=words):
        rotary_tables(config, 4)


def test_a_config_that_is_nested_too_deeply(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(ExportError, match=r"config.json cannot be read: it is nested too deeply"):
        read_json(tmp_path / "config.json")


def test_every_end_that_a_checkpoint_names(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoint, folder)
    configure(eos_token_id=2)(folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 2, 5]}')
    source = HuggingFaceSource.open(folder, Quantisation())
    assert source.hf_config["eos_token_id"] == [2, 5, 7]
    (folder / "generation_config.json").write_text("{}")
    assert HuggingFaceSource.open(folder, Quantisation()).hf_config["eos_token_id"] == [2]


def test_an_end_that_only_the_text_part_of_a_config_names() -> None:
    """Models that see pictures have a config for each of their parts."""
    assert all_ends({"text_config": {"eos_token_id": 9}}, {"eos_token_id": [7]}) == [7, 9]
    assert all_ends({"text_config": None, "eos_token_id": 4}) == [4]


GRANITE_H = {
    "model_type": "granitemoehybrid",
    "layer_types": ["mamba", "attention"],
    "hidden_size": 2048,
    "num_local_experts": 0,
    "mamba_n_heads": 64,
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"model_type": "llama", "num_local_experts": 8},
            "a mixture of experts, which is not supported for 'llama'; these are: gpt-oss, "
            "Granite 3 with experts, Granite with a shared expert, LFM2 with experts, Qwen3 with "
            "experts",
        ),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "ME"}, "are of the types"),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M" * 513}, "_pattern is 'MM"),
        ({"model_type": "nemotron_h", "mamba_hidden_act": "gelu"}, "only silu is supported"),
        (GRANITE_H | {"time_step_limit": [0.0, 0.1]}, r"kept within \[0.0, 0.1\]"),
        (GRANITE_H | {"mamba_d_state": 300}, "mamba_d_state is 300; 1 to 256 is supported"),
        (GRANITE_H | {"mamba_n_groups": 3}, "3 groups do not share 64 heads of 64 evenly"),
        ({"model_type": "falcon_h1", "mlp_bias": True}, "its matrices have biases"),
        ({"model_type": "falcon_h1", "mamba_rms_norm": True}, "normalised ahead of their gate"),
        ({"model_type": "falcon_h1", "lm_head_multiplier": 0.0}, "logits are multiplied with 0"),
    ],
)
def test_other_experts_and_mixers_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ExportError, match=words):
        decoder_config(read_config({"num_hidden_layers": 2, **given}), None)


@pytest.mark.parametrize("most", [float("inf"), "Infinity", {"__float__": "Infinity"}])
def test_time_steps_without_bounds_are_spelt_in_several_ways(most: Any) -> None:
    given = {"num_hidden_layers": 2, **GRANITE_H, "time_step_limit": [0.0, most]}
    assert decoder_config(read_config(given), None).mixer.scan is not None


def test_heads_have_an_even_width() -> None:
    config = read_config({"model_type": "llama", "head_dim": 3})
    with pytest.raises(ExportError, match="heads are 3 wide"):
        decoder_config(config, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "-o", "out"], "there is no folder nowhere, and it is not a hub id"),
        (["{checkpoint}"], "say where to write it: -o models/NAME"),
        (["{checkpoint}", "-o", "out", "--max-seq-len", "4096"], "--max-seq-len 4096 is outside"),
        (
            ["{checkpoint}", "-o", "out", "--group-size", "128"],
            "not a multiple of the group size 128",
        ),
        (["{checkpoint}", "-o", "out", "--max-seq-len", "0"], "--max-seq-len 0 is outside 2 to"),
        (["{checkpoint}", "-o", "out", "--max-seq-len", "1"], "--max-seq-len 1 is outside 2 to"),
    ],
)
def test_bad_requests(
    arguments: list[str],
    words: str,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([part.format(checkpoint=checkpoint) for part in arguments]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_foreign_folder_is_not_overwritten(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "diary.txt").write_text("dear diary")
    assert main([str(checkpoint), "-o", str(out)]) == 2
    assert str(out) in capsys.readouterr().err
    assert (out / "diary.txt").read_text() == "dear diary"


def test_a_full_disk_leaves_nothing(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import errno

    from export import model_writer

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_writer, "_write_tensors", full)
    assert main([str(checkpoint), "-o", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("error: ")
    assert "full" in line or "space" in line
    assert list(tmp_path.iterdir()) == []
