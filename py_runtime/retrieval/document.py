"""Documents as they are searched: their text, cut into chunks that know where they stand."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

PDF, FOLDER = "pdf", "folder"
TABLES = ("csv", "tsv")  # kinds of which each line is a row
PROSE = (PDF, "text", "txt", "md", "markdown")  # kinds that are not code
MOST_BYTES = 800  # of a chunk: about 200 tokens
MOST_HEADING = 200  # characters of a table's first line, where its rows are named
LEAST = 0.5  # of that, where a better place to cut is found behind it
# Where a text is cut rather than later, the best first.
PARAGRAPH = re.compile(r"\n[ \t]*\n")
SENTENCE = re.compile(r"[.!?][\"')\]]?\s|[\u3002\uff01\uff1f]")  # the last ones are Chinese
LINE, SPACE = re.compile(r"\n"), re.compile(r"\s")
TOP_LEVEL = re.compile(r"\n(?=[^\s})\]])")  # in code: what begins at the margin


@dataclass(frozen=True)
class Chunk:
    """A part of a document's text, within one page or file of it."""

    start: int
    end: int
    part: int  # the page or file that it is in, from 0
    first: int  # of its lines in that, from 1; of a table, its rows, without the heading
    last: int


@dataclass(frozen=True)
class Place:
    """The place of a passage, as people look it up."""

    name: str  # of the file
    unit: str  # page, line or row
    first: int
    last: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"{self.name}, {self.unit} {self.first}"
        return f"{self.name}, {self.unit}s {self.first}–{self.last}"


@dataclass(frozen=True)
class Document:
    """A file, or a folder of files, as text.

    `starts`: where each page of a PDF begins, or each file of a folder, which `names` has.
    """

    name: str
    kind: str
    text: str
    starts: Sequence[int] = ()
    names: Sequence[str] = ()
    chunks: Sequence[Chunk] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunks", tuple(self._chunks()))

    def place(self, first: Chunk, last: Chunk) -> Place:
        """Return where a chunk is, or several that follow each other."""
        if self.kind == PDF:
            return Place(self.name, "page", first.part + 1, last.part + 1)
        name = self.names[first.part] if self.kind == FOLDER else self.name
        unit = "row" if self._kind_of_part(first.part) in TABLES else "line"
        end = last.last if first.part == last.part else first.last
        return Place(name, unit, first.first, end)

    def label(self, chunk: Chunk) -> str:
        """Name a chunk's place for a model; rows of a table come with the names of columns."""
        place = self.place(chunk, chunk)
        if place.unit != "row":
            return str(place)
        start = self.starts[chunk.part] if self.starts else 0
        heading = self.text[start : start + MOST_HEADING].partition("\n")[0].strip()
        return f"{place} of the columns {heading}"

    def _chunks(self) -> Iterator[Chunk]:
        starts = list(self.starts) or [0]
        ends = [*starts[1:], len(self.text)]
        for part, (start, end) in enumerate(zip(starts, ends, strict=True)):
            yield from self._chunks_of(part, start, end, self._kind_of_part(part))

    def _kind_of_part(self, part: int) -> str:
        return self.names[part].rpartition(".")[2].lower() if self.kind == FOLDER else self.kind

    def _chunks_of(self, part: int, start: int, end: int, kind: str) -> Iterator[Chunk]:
        text = self.text
        size = len(text[start:end].encode(errors="surrogatepass"))
        most = max(1, MOST_BYTES * (end - start) // max(1, size))  # characters
        line = 0 if kind in TABLES else 1
        before = start
        for begin, stop in _pieces(text, start, end, most, kind):
            line += text.count("\n", before, begin)
            last = line + text.count("\n", begin, stop)
            before = begin
            if last:  # the heading of a table alone is no row of it
                yield Chunk(begin, stop, part, max(line, 1), last)


def _pieces(text: str, start: int, end: int, most: int, kind: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece of a text begins and ends, without the blanks around it."""
    if kind in TABLES:
        marks = [LINE, SPACE]
    elif kind in PROSE:
        marks = [PARAGRAPH, SENTENCE, LINE, SPACE]
    else:
        marks = [TOP_LEVEL, PARAGRAPH, LINE, SPACE]
    while True:
        while start < end and text[start].isspace():
            start += 1
        if start >= end:
            return
        stop = _cut(text, start, end, most, marks)
        yield start, start + len(text[start:stop].rstrip())
        start = stop


def _cut(text: str, start: int, end: int, most: int, marks: Sequence[re.Pattern[str]]) -> int:
    """Return where a piece ends at the latest good place."""
    if end - start <= most:
        return end
    least = start + int(most * LEAST)
    for mark in marks:
        found = [each.end() for each in mark.finditer(text, least, start + most)]
        if found:
            return found[-1]
    return start + most


def utf_16_places(text: str) -> np.ndarray | None:
    """Return where each character begins in JavaScript's count; None where that is Python's, too.

    One more place follows, where the text ends.
    """
    if text.isascii() or max(text, default="") <= "\uffff":
        return None
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return np.concatenate([[0], np.cumsum(1 + (points > 0xFFFF))])
