"""Brotli and gzip variants of the site's files, made once per content and kept in the user's cache.

A variant is found by the sha256 of the plain content, so a second checkout makes none again.
"""

import gzip
from pathlib import Path

import brotli

from tools.files import user_cache, write_whole

SUFFIXES = frozenset(
    {".css", ".html", ".js", ".json", ".mjs", ".svg", ".txt", ".wasm", ".webmanifest", ".wgsl"}
)
MAX_SIZE = 64 << 20
MAX_RATIO = 0.9  # a variant that is not a tenth smaller only takes up room

# HTTP's name of the encoding -> how its files end, the one preferred first
ENCODINGS = {"br": ".br", "gzip": ".gz"}

# Quality 11 saves another 12% of Pyodide's 9.6 MB of wasm, for 38 s instead of 3 s.
SLOW_QUALITY, QUICK_QUALITY = 11, 9
SLOW_QUALITY_SIZE = 2 << 20


class VariantStore:
    """A store of variants by the sha256 of the content, so that none is ever out of date."""

    def __init__(self, cache: Path | None = None) -> None:
        self.folder = (cache or user_cache()) / "compressed"

    def find(self, sha256: str) -> dict[str, Path]:
        """Return encoding -> file, for the variants that were made of this content."""
        paths = {encoding: self._path(sha256, encoding) for encoding in ENCODINGS}
        return {encoding: path for encoding, path in paths.items() if path.is_file()}

    def make(self, sha256: str, data: bytes) -> dict[str, Path]:
        """Make the variants that are missing and pay, and return all as `find` does."""
        for encoding in ENCODINGS.keys() - self.find(sha256).keys():
            variant = compress(encoding, data)
            if len(variant) < MAX_RATIO * len(data):
                write_whole(self._path(sha256, encoding), variant)
        return self.find(sha256)

    def _path(self, sha256: str, encoding: str) -> Path:
        return self.folder / (sha256 + ENCODINGS[encoding])


def may_pay(name: str, size: int) -> bool:
    """Return whether a file of this name and size is worth compressing."""
    return Path(name).suffix in SUFFIXES and size <= MAX_SIZE


def compress(encoding: str, data: bytes) -> bytes:
    """Compress so that the same content always gives the same bytes."""
    if encoding == "gzip":
        return gzip.compress(data, mtime=0)
    quality = SLOW_QUALITY if len(data) <= SLOW_QUALITY_SIZE else QUICK_QUALITY
    variant: bytes = brotli.compress(data, quality=quality)
    return variant
