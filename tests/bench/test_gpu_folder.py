"""The folder that travels to a machine with a GPU, and what is fetched for the bench."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from bench.gpu_folder import SCRIPTS
from bench.synthetic import write_template
from py_runtime.folder.on_disk import verify_files
from py_runtime.gguf.plane_values import dense
from tools.files import ROOT

pytestmark = pytest.mark.torch


def test_the_gpu_machine_needs_the_standard_library_alone(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    for script in SCRIPTS:
        (tmp_path / "bench" / script).write_bytes((ROOT / "bench" / script).read_bytes())
    (tmp_path / "run.py").write_bytes((ROOT / "bench" / "run_gpu.py").read_bytes())
    helped = subprocess.run(
        [sys.executable, "-S", "run.py", "--help"], cwd=tmp_path, capture_output=True, text=True
    )
    assert helped.returncode == 0, helped.stderr
    assert "--browser CHROMIUM" in helped.stdout


def test_a_template_becomes_a_whole_model(tmp_path: Path) -> None:
    template, model = tmp_path / "template", tmp_path / "tiny-random"
    write_template("tiny", template)
    assert not list(template.glob("*.safetensors"))
    fill = ROOT / "bench" / "fill.py"
    subprocess.run([sys.executable, "-I", "-S", fill, template, model], check=True)
    manifest = verify_files(model)
    assert (manifest.name, manifest.context) == ("tiny-random", 2048)
    about = json.loads((template / "template.json").read_text())
    read = about["bytes_read_per_token"]
    weights = load_file(next(model.glob("weights-*")))
    assert any(name.startswith("__pad") for name in weights)
    assert all(np.isfinite(array).all() for array in weights.values())
    beside = ("__pad", "cos", "sin", "embed_tokens.")  # of these a step reads a row at the most
    assert read == sum(a.nbytes for name, a in weights.items() if not name.startswith(beside))
    # Of each layer: q, k, v and what follows attention; gate, up and down.
    assert about["arithmetic_per_token"] == 2 * 2 * (64 * (64 + 32 + 32 + 64) + 3 * 64 * 160)


def test_a_template_of_q4_k_m(tmp_path: Path) -> None:
    """Random weights of the types of such a file, near 1 in size wherever they are multiplied."""
    template, model = tmp_path / "template", tmp_path / "model"
    write_template("tiny-q4_k_m", template)
    fill = ROOT / "bench" / "fill.py"
    subprocess.run([sys.executable, "-I", "-S", fill, template, model], check=True)
    assert verify_files(model).quantisation == "q4_k + q6_k"
    weights = load_file(next(model.glob("weights-*")))
    for owner, kind in (("layers.0.self_attn.v_proj", "q4_k"), ("layers.1.mlp.down_proj", "q6_k")):
        values = dense(kind, weights[f"{owner}.weight"], weights[f"{owner}.scales"])
        assert 0.8 < values.std() * np.sqrt(values.shape[1]) < 1.2
        assert abs(values.mean()) < 0.1 * values.std()


def test_peers_are_pinned_and_name_no_host() -> None:
    lock = (ROOT / "bench" / "package-lock.json").read_text()
    assert "://" not in lock
    packages = json.loads(lock)["packages"]
    wanted = json.loads((ROOT / "bench" / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
        assert packages[f"node_modules/{name}"]["integrity"].startswith("sha512-")
    lines = (ROOT / "bench" / "requirements.txt").read_text().splitlines()
    assert all("==" in line for line in lines if not line.startswith("#"))
