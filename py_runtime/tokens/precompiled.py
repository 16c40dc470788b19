"""The normalizer that SentencePiece compiles: a trie of texts, and what stands in place of each."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable

import numpy as np

from py_runtime.tokens.section import Section

WORD_BYTES = 4  # of the trie, which begins behind its own length
LEAF, LABEL, VALUE = 1 << 8, (1 << 31) | 0xFF, (1 << 31) - 1  # bits of its units
FAR, FAR_BITS, OFFSET_BITS = 1 << 9, 6, 10
SHORT = 6  # bytes that a cluster of characters has fewer of, where it is looked up as a whole
# Characters that join the one before them, besides marks; and those that join the next.
JOINING = "\u200c\u200d\u0e33\u0eb3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
JOINED = "\u0600-\u0605\u06dd\u070f"


def build_precompiled(section: Section) -> Callable[[str], str]:
    """Build it of the `precompiled_charsmap`; TokenizerError for one that is damaged."""
    try:
        data = base64.b64decode(section.get("precompiled_charsmap", str), validate=True)
    except (binascii.Error, ValueError):
        raise section.error("precompiled_charsmap is not base64") from None
    size = int.from_bytes(data[:WORD_BYTES], "little")
    if len(data) < WORD_BYTES or size % WORD_BYTES or not 0 < size <= len(data) - WORD_BYTES:
        raise section.error(f"precompiled_charsmap has {len(data)} bytes, of which {size} are trie")
    trie = np.frombuffer(data, "<u4", size // WORD_BYTES, WORD_BYTES).tolist()
    return _CharsMap(trie, data[WORD_BYTES + size :]).normalise


class _CharsMap:
    def __init__(self, trie: list[int], texts: bytes) -> None:
        self._trie = trie  # a double array, as darts-clone writes it
        self._texts = texts
        self._known: dict[str, str | None] = {}

    def normalise(self, text: str) -> str:
        return "".join(self._of_cluster(cluster) for cluster in _clusters(text))

    def _of_cluster(self, cluster: str) -> str:
        if len(cluster) > 1 and len(cluster.encode()) < SHORT:
            whole = self._found(cluster)
            if whole is not None:
                return whole
        parts = ((char, self._found(char)) for char in cluster)
        return "".join(char if found is None else found for char, found in parts)

    def _found(self, text: str) -> str | None:
        """Return what stands in place of a text, or of the first of it that the trie has."""
        if text not in self._known:
            self._known[text] = self._looked_up(text.encode())
        return self._known[text]

    def _looked_up(self, key: bytes) -> str | None:
        trie = self._trie
        at = _offset(trie[0])
        for byte in key:
            at ^= byte
            if byte == 0 or at >= len(trie) or trie[at] & LABEL != byte:
                return None
            unit = trie[at]
            at ^= _offset(unit)
            if unit & LEAF and at < len(trie):
                begin = trie[at] & VALUE
                end = self._texts.find(b"\0", begin)
                return self._texts[begin : end if end >= 0 else None].decode(errors="replace")
        return None


def _offset(unit: int) -> int:
    return (unit >> OFFSET_BITS) << ((unit & FAR) >> FAR_BITS)


_OTHERS = re.compile(f"[{JOINING}]")
_BEFORE = re.compile(f"[{JOINED}]")


def _clusters(text: str) -> list[str]:
    """Cut a text into what readers take for characters, exactly so where these are short."""
    if text.isascii() and "\r\n" not in text:
        return list(text)
    found: list[str] = []
    for char in text:
        last = found[-1][-1] if found else ""
        is_joining = unicodedata.category(char)[0] == "M" or _OTHERS.match(char) is not None
        joins = last != "" and is_joining and not _is_control(last)
        is_joined = last != "" and _BEFORE.match(last) is not None and not _is_control(char)
        if joins or is_joined or (last == "\r" and char == "\n"):
            found[-1] += char
        else:
            found.append(char)
    return found


def _is_control(char: str) -> bool:
    """Tell whether a character stands by itself, whatever comes behind it."""
    kind = unicodedata.category(char)
    joins = _OTHERS.match(char) is not None or _BEFORE.match(char) is not None
    return kind in ("Cc", "Zl", "Zp") or (kind == "Cf" and not joins)
