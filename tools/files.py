"""The places of a checkout and of the user's cache, and a way to write files whole."""

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def user_cache() -> Path:
    """Return the user's cache folder; what is there may be deleted at any time."""
    return platformdirs.user_cache_path("inpage")


def sha256_of(path: Path) -> str:
    """Return the hash in hex digits, of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_plain_name(name: str) -> bool:
    """Return whether the name is one step down a folder: no dotfile, no way up, nothing odd."""
    return name.isprintable() and name[:1] not in ("", ".") and not {"/", "\\"} & set(name)


def plain_file(root: Path, parts: list[str]) -> Path | None:
    """Return the file `parts` below `root`, without following symbolic links.

    All but the last step of `root` must be resolved already.
    """
    if not all(map(is_plain_name, parts)):
        return None
    # Strings, one step at a time: a site has hundreds of files, and each start asks for all.
    path = os.fspath(root)
    try:
        for part in parts:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return None
            path = f"{path}{os.sep}{part}"
        return Path(path) if stat.S_ISREG(os.lstat(path).st_mode) else None
    except (OSError, ValueError):  # absent, an impossible name
        return None


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` so that `path` holds either all of it or what it held before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes files private; these are for whoever may read the folder
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


if __name__ == "__main__":  # make clean-cache
    print(f"removing {user_cache()}")
    shutil.rmtree(user_cache(), ignore_errors=True)
