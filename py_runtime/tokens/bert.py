"""BERT's normalizer and pre-tokenizer, by the tables of characters that `tokenizers` has.

These tables are of Unicode 8, and those here of Unicode 16: what differs is listed.
"""

import re
from collections.abc import Callable, Iterable

from py_runtime.tokens import characters
from py_runtime.tokens.characters import Ranges

# Formats that came later; tabs and line ends, which are spaces here.
_KEPT_CONTROLS = "9-A D 890-891 8E2 110CD 13430-1343F"
_NO_SPACES = "B-C 85"  # these are controls here
_YOUNGER_PUNCTUATION = """
61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 10D6E 10EAD 10F55-10F59 10F86-10F89
113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2
11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8
11F43-11F4F 11FFF 12FF1-12FF2 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F
"""
_OLDER_PUNCTUATION = "166D 111C9"
_YOUNGER_MARKS = """
7FD 897-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA ECE 180F 1885-1886 1ABF-1ACE
1DF6-1DFB A82C A8C5 A8FF A9BD 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFC-10EFF 10F46-10F50
10F82-10F85 11070 11073-11074 110C2 111C9 111CF 1123E 11241 1133B 113BB-113C0 113CE 113D0 113D2
113E1-113E2 11438-1143F 11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943
119D4-119D7 119DA-119DB 119E0 11A01-11A0A 11A33-11A38 11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B
11A8A-11A96 11A98-11A99 11C30-11C36 11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3
11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4
11F00-11F01 11F36-11F3A 11F40 11F42 11F5A 13440 13447-13455 1611E-16129 1612D-1612F 16F4F 16FE4
1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F
1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E944-1E94A
"""
_OLDER_MARKS = "1734 1171E"
# The last block but one begins at 2B820 in Unicode; `tokenizers` has this number.
_CHINESE = "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF 2F800-2FA1F"
_ASCII_PUNCTUATION = "21-2F 3A-40 5B-60 7B-7E"
_REPLACEMENT = "FFFD"

Words = Callable[[str, bool], Iterable[str]]


def _ranges(listed: str) -> Ranges:
    ends = (part.partition("-") for part in listed.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in ends]


def _without(ranges: Ranges, listed: str) -> Ranges:
    gone = characters.union(_ranges(listed))
    return characters.complement(characters.union(characters.complement(ranges), gone))


def _inside(ranges: Ranges) -> str:
    """Return what stands between the brackets of a set in a pattern."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def clean_text() -> Callable[[str], str]:
    """Return a normalizer that drops controls and makes all whitespace spaces."""
    controls = _without(characters.categories("Cc", "Cf", "Co"), _KEPT_CONTROLS)
    dropped = re.compile(f"[{_inside(characters.union(controls, _ranges(_REPLACEMENT)))}]+")
    white = _without(characters.ranges_of_text(characters.WHITESPACE), _NO_SPACES)
    spaces = re.compile(f"[{_inside(white)}]")
    return lambda text: spaces.sub(" ", dropped.sub("", text))


def part_chinese() -> Callable[[str], str]:
    """Return a normalizer that puts spaces around each Chinese character."""
    chinese = re.compile(f"[{_inside(_ranges(_CHINESE))}]")
    return lambda text: chinese.sub(r" \g<0> ", text)


def strip_marks() -> Callable[[str], str]:
    """Return a normalizer that drops the accents of a decomposed text."""
    younger = _without(characters.categories("Mn"), _YOUNGER_MARKS)
    marks = re.compile(f"[{_inside(characters.union(younger, _ranges(_OLDER_MARKS)))}]+")
    return lambda text: marks.sub("", text)


def bert_words() -> Words:
    """Return BERT's pre-tokenizer: words between spaces, and each punctuation mark by itself."""
    younger = _without(characters.categories("P"), _YOUNGER_PUNCTUATION)
    listed = _ranges(_ASCII_PUNCTUATION), _ranges(_OLDER_PUNCTUATION)
    marks = _inside(characters.union(younger, *listed))
    white = _inside(characters.ranges_of_text(characters.WHITESPACE))
    words = re.compile(f"[{marks}]|[^{marks}{white}]+")
    return lambda piece, starts_text: (found[0] for found in words.finditer(piece))
