"""The places of messages' contents in a prompt that a template has rendered.

The prompt is rendered once more with marks around each content, inside the whitespace that
templates like to trim. Where it is the same prompt but for the marks, they stand where the contents
do.
"""

import re
from dataclasses import dataclass

# Noncharacters, as those of seams.py: the number of a message, its content.
NUMBER, OPEN, CLOSE = "\ufdd2", "\ufdd3", "\ufdd4"
_MARKS = re.compile(f"{NUMBER}([0-9]+){OPEN}|{CLOSE}")


@dataclass(frozen=True)
class ContentSpan:
    """The place of a message's content, in characters of the prompt."""

    message: int
    start: int
    stop: int


def wrap_content(message: int, content: str) -> str:
    """Return a message's content with marks; one that is blank, or has marks itself, stays."""
    core = content.strip()
    if not core or any(mark in content for mark in (NUMBER, OPEN, CLOSE)):
        return content
    before, _, after = content.partition(core)
    return f"{before}{NUMBER}{message}{OPEN}{core}{CLOSE}{after}"


def find_contents(marked: str) -> tuple[str, list[ContentSpan]]:
    """Return the prompt without marks, and the contents that lay between them."""
    parts: list[str] = []
    spans: list[ContentSpan] = []
    opened: tuple[int, int] | None = None  # the message, and where its content begins
    length = last = 0
    for mark in _MARKS.finditer(marked):
        parts.append(marked[last : mark.start()])
        length += len(parts[-1])
        last = mark.end()
        if mark[1] is not None:
            opened = int(mark[1]), length
        elif opened is not None:
            spans.append(ContentSpan(*opened, length))
            opened = None
    parts.append(marked[last:])
    return "".join(parts), spans
