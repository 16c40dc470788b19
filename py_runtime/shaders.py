"""WGSL sources by name."""

from functools import cache
from pathlib import Path

_INSIDE_WHEEL = Path(__file__).parent / "shaders"
_IN_CHECKOUT = Path(__file__).parent.parent / "shaders"


@cache
def shader_source(name: str) -> str:
    folder = _INSIDE_WHEEL if _INSIDE_WHEEL.is_dir() else _IN_CHECKOUT
    return (folder / f"{name}.wgsl").read_text(encoding="utf-8")
