"""WGSL sources by name: the path under shaders/, without its suffix."""

from functools import cache
from pathlib import Path

_INSIDE_WHEEL = Path(__file__).parent.parent / "shaders"
_IN_CHECKOUT = Path(__file__).parent.parent.parent / "shaders"
_SUFFIX = ".wgsl"


@cache
def shader_source(name: str) -> str:
    return (_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def read_all_shaders() -> None:
    """So that none is read from a file later."""
    for path in _folder().rglob(f"*{_SUFFIX}"):
        shader_source(path.relative_to(_folder()).with_suffix("").as_posix())


def _folder() -> Path:
    return _INSIDE_WHEEL if _INSIDE_WHEEL.is_dir() else _IN_CHECKOUT
