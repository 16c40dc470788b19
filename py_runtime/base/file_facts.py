"""The facts by which a file is recognised, wherever it comes from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FileFacts:
    """The size and hash that a file's bytes must have."""

    size: int
    sha256: str
