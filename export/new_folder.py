"""A folder that appears whole or not at all."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from export.errors import ExportError


@contextmanager
def new_folder(folder: Path, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield an empty hidden folder beside `folder` that takes its place when the block ends well.

    A block that fails leaves `folder` as it was. What is there already must be an empty folder or
    one that `may_replace` knows.
    """
    _clear_leftovers(folder)
    _refuse_strangers(folder, may_replace)
    partial = _sibling(folder, "partial")
    partial.mkdir(parents=True)
    try:
        yield partial
        _refuse_strangers(folder, may_replace)
        _take_place(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _sibling(folder: Path, purpose: str) -> Path:
    return folder.with_name(f".{folder.name}.{purpose}-{os.getpid()}")


def _refuse_strangers(folder: Path, may_replace: Callable[[Path], bool]) -> None:
    if not folder.exists():
        return
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if not is_empty and not may_replace(folder):
        raise ExportError(
            f"{folder} is there already and is not a model folder; choose another folder or "
            "remove it"
        )


def _take_place(partial: Path, folder: Path) -> None:
    """Put the new folder in place.

    No system swaps two folders in one step, so the old one moves first.
    """
    if not folder.exists():
        partial.rename(folder)
        return
    former = _sibling(folder, "former")
    folder.rename(former)
    try:
        partial.rename(folder)
    except BaseException:
        former.rename(folder)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _clear_leftovers(folder: Path) -> None:
    """Remove what dead processes left behind; a former folder that nothing replaced comes back."""
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.(partial|former)-([0-9]+)")
    for sibling in folder.parent.iterdir() if folder.parent.is_dir() else ():
        match = pattern.fullmatch(sibling.name)
        if match is None or _runs_elsewhere(int(match[2])):
            continue
        if match[1] == "former" and not folder.exists():
            sibling.rename(folder)
        else:
            shutil.rmtree(sibling)


def _runs_elsewhere(process: int) -> bool:
    """Containers give the same number again: a leftover under this process's own is an old one."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)  # sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
