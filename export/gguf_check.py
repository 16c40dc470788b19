"""That a GGUF file's metadata fits into the file, before a reader that trusts it walks through."""

import mmap
import struct
from pathlib import Path

from export.errors import ExportError

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes, by type
STRING, ARRAY = 8, 9
HEADER = struct.Struct("<4sIQQ")  # magic, version, tensors, metadata
MAX_ITEMS = 1 << 22  # of an array: a vocabulary of 256,000 with its merges has fewer


def check_gguf(path: Path) -> None:
    """ExportError names the entry that does not fit. Other faults are the reader's to find."""
    with path.open("rb") as file:
        if path.stat().st_size < HEADER.size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            magic, _, _, entries = HEADER.unpack_from(data)
            if magic == b"GGUF":
                _Walk(path, data).entries(entries)


class _Walk:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._at = HEADER.size

    def entries(self, count: int) -> None:
        for _ in range(count):
            name = bytes(self._text()).decode("utf-8", "replace")
            self._value(name, self._number("<I"))

    def _value(self, name: str, kind: int) -> None:
        if kind == STRING:
            self._text()
        elif kind == ARRAY:
            kind, count = self._number("<I"), self._number("<Q")
            if kind == ARRAY:
                raise self._fault(f"'{name}' holds arrays inside an array")
            if count > MAX_ITEMS:
                raise self._fault(f"'{name}' has {count} items; at most {MAX_ITEMS} are read")
            if kind == STRING:
                for _ in range(count):
                    self._text()
            else:
                self._take(count * self._size(name, kind))
        else:
            self._take(self._size(name, kind))

    def _size(self, name: str, kind: int) -> int:
        if kind not in SIZES:
            raise self._fault(f"'{name}' is of the unknown type {kind}")
        return SIZES[kind]

    def _text(self) -> bytes:
        return self._take(self._number("<Q"))

    def _number(self, form: str) -> int:
        number: int = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return number

    def _take(self, nbytes: int) -> bytes:
        begin, self._at = self._at, self._at + nbytes
        if self._at > len(self._data):
            raise self._fault("its metadata ends behind the file")
        return self._data[begin : self._at]

    def _fault(self, text: str) -> ExportError:
        return ExportError(f"{self._path} is no whole GGUF file: {text}")
