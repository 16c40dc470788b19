"""The check that a file's bytes are the right ones, made while they pass."""

import hashlib
from dataclasses import dataclass

import numpy as np

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelFileError, ModelHashError

ADVICE = "load it again; if that does not help, it is damaged where it comes from"


@dataclass(frozen=True)
class ExpectedFile:
    """A file's name, the facts that its bytes must agree with, and who says so."""

    name: str
    facts: FileFacts
    described: str  # completes "it is not the file that …", as in "the Hub lists"


class FileCheck:
    """A check of the blocks of one file, in order: no more bytes, no fewer, and the right hash."""

    def __init__(self, expected: ExpectedFile, hashing: bool = True) -> None:
        self.position = 0  # bytes that have passed
        self._expected = expected
        self._sha256 = hashlib.sha256() if hashing else None

    def take(self, block: np.ndarray) -> None:
        """Count and hash a block; raise ModelFileError if the file is longer than it should be."""
        size = self._expected.facts.size
        if self.position + len(block) > size:
            raise ModelFileError(
                f"{self._expected.name} has more than the {size} bytes it should have", ADVICE
            )
        if self._sha256 is not None:
            self._sha256.update(block.data)
        self.position += len(block)

    def finish(self) -> None:
        """Raise ModelFileError or ModelHashError unless these were the whole file's bytes."""
        self.check_size(self.position)
        wanted = self._expected.facts.sha256
        if self._sha256 is not None and (found := self._sha256.hexdigest()) != wanted:
            raise ModelHashError(
                f"{self._expected.name} is not the file that {self._expected.described}: its "
                f"sha256 is {found}, but should be {wanted}",
                ADVICE,
            )

    def check_size(self, size: int | None) -> None:
        """Raise ModelFileError if the file has another size; None stands for one not known yet."""
        wanted = self._expected.facts.size
        if size not in (None, wanted):
            raise ModelFileError(
                f"{self._expected.name} has {size} bytes, but should have {wanted}", ADVICE
            )
