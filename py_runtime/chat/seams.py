"""The seams of a prompt: where a message's text looks like control tokens, which are a template's.

A message may spell a control token, such as `<|im_end|>`: as text it is harmless, as a token it is
a turn of somebody else's. Before a template is rendered, such spellings are put between two marks
that no text has; afterwards the marks go, and the tokenizer is told where they stood.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Noncharacters, which Unicode keeps free for uses such as this: no text has them.
OPEN, CLOSE = "\ufdd0", "\ufdd1"
_MARKS = re.compile(f"[{OPEN}{CLOSE}]")

Span = tuple[int, int]  # first character, and the first behind it


class Seams:
    """A marker of the control tokens that messages spell.

    `control_tokens` are all a tokenizer has.
    """

    def __init__(self, control_tokens: Iterable[str]) -> None:
        longest_first = sorted(filter(None, control_tokens), key=len, reverse=True)
        self._spelled = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def mark(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages with marks in every text, names and arguments of tools included."""
        return [
            {
                key: value if key == "role" else self.mark_value(value)
                for key, value in message.items()
            }
            for message in messages
        ]

    def mark_value(self, value: Any) -> Any:
        """Anything that JSON holds, names of properties included."""
        if isinstance(value, str):
            plain = _MARKS.sub("\ufffd", value)
            return self._spelled.sub(lambda found: f"{OPEN}{found[0]}{CLOSE}", plain)
        if isinstance(value, dict):
            return {self.mark_value(key): self.mark_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mark_value(item) for item in value]
        return value


def unmark(marked: str) -> tuple[str, list[Span]]:
    """Return the prompt without marks, and the spans of it that are text whatever they spell.

    A template may cut a text at any place, so that one mark of a pair is missing: such a mark is
    ignored.
    """
    text, spans, opened, length = [], [], None, 0
    for part in re.split(f"([{OPEN}{CLOSE}])", marked):
        if part == OPEN:
            opened = length
        elif part == CLOSE:
            if opened is not None:
                spans.append((opened, length))
            opened = None
        else:
            text.append(part)
            length += len(part)
    return "".join(text), spans
