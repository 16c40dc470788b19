"""The normalizers of tokenizer.json: from text to text. What that file names keeps its spelling."""

import unicodedata
from collections.abc import Callable
from functools import partial, reduce
from itertools import groupby

from py_runtime.tokens.bert import clean_text, part_chinese, strip_marks
from py_runtime.tokens.characters import WHITESPACE
from py_runtime.tokens.patterns import Pattern
from py_runtime.tokens.precompiled import build_precompiled
from py_runtime.tokens.section import Section

Normalizer = Callable[[str], str]

# `tokenizers` composes and decomposes by the tables of Unicode 10. These characters are younger,
# and later tables give them a part in normalisation; to `tokenizers` they are inert.
_YOUNGER = """
7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA 32FF A7F2-A7F4 A82C AB69
105C9 105D2 105DA 105E4 10781-10785 10787-107B0 107B2-107BA 10D24-10D27 10D69-10D6D
10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 11382-11385 1138B 1138E
11390-11391 113C2 113C5 113C7-113C8 113CE-113D0 1145E 11839-1183A 11935 11938 1193D-1193E
11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 1611E 16121-16129 1612F
16D63 16D67-16D6A 16FF0-16FF1 1CCD6-1CCF9 1E030-1E06D 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF
1E4EC-1E4EF 1E5EE-1E5EF 1F16C 1FBF0-1FBF9
"""
# Letters whose lower case Unicode 17 has and Python's tables may lack.
_YOUNGER_CAPITALS = (
    {0x1C89: 0x1C8A, 0xA7CB: 0x264, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF, 0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5}
    | {0xA7DA: 0xA7DB, 0xA7DC: 0x19B}
    | {capital: capital + 0x20 for capital in range(0x10D50, 0x10D66)}
    | {capital: capital + 0x1B for capital in range(0x16EA0, 0x16EB9)}
)
_YOUNGER_SET = "".join(
    "-".join(f"\\x{{{end}}}" for end in ends.split("-")) for ends in _YOUNGER.split()
)
_INERT = Pattern(f"[{_YOUNGER_SET}]+")
LONG_RUN = 64  # marks behind one letter: more than any script stacks


def build_normalizer(section: Section | None) -> Normalizer:
    """Build a normalizer.

    No section leaves a text as it is. An unknown kind is a TokenizerError.
    """
    if section is None:
        return lambda text: text
    match section.kind:
        case "NFC" | "NFD" | "NFKC" | "NFKD" as form:
            return partial(unicode_form, form)
        case "Lowercase":
            return lowercase
        case "StripAccents":
            return strip_marks()
        case "BertNormalizer":
            return bert_normalizer(section)
        case "Strip":
            left = section.get("strip_left", bool)
            right = section.get("strip_right", bool)
            return partial(strip, left=left, right=right)
        case "Prepend":
            return partial(prepend, section.get("prepend", str))
        case "Replace":
            pattern = Pattern.from_section(Section.of(section.where, section.fields.get("pattern")))
            return partial(pattern.replace, content=section.get("content", str))
        case "Precompiled":
            return build_precompiled(section)
        case "Sequence":
            steps = [build_normalizer(step) for step in section.sections("normalizers")]
            return lambda text: reduce(lambda so_far, step: step(so_far), steps, text)
        case _:
            raise section.unsupported()


def bert_normalizer(section: Section) -> Normalizer:
    """Build BERT's, of which each step can be left out."""
    lowers = section.get("lowercase", bool)
    steps: list[Normalizer] = []
    if section.get("clean_text", bool):
        steps.append(clean_text())
    if section.get("handle_chinese_chars", bool):
        steps.append(part_chinese())
    if section.get("strip_accents", bool, lowers):
        steps += [partial(unicode_form, "NFD"), strip_marks()]
    if lowers:
        steps.append(lowercase)
    return lambda text: reduce(lambda so_far, step: step(so_far), steps, text)


def unicode_form(form: str, text: str) -> str:
    """Normalise as Unicode 10 does, whatever version Python has."""
    if unicodedata.is_normalized(form, text):  # type: ignore[arg-type]
        return text
    return change_between(_INERT, text, partial(_normalise, form))


def _normalise(form: str, text: str) -> str:
    """Return unicodedata's normal form, in time that grows with the text alone.

    Python sorts the marks behind a letter by insertion: a text of a million marks would take it
    hours. Long runs are sorted beforehand, which does not change the result.
    """
    if _has_long_run_of_marks(text):
        decomposition = "NFKD" if "K" in form else "NFD"
        single = partial(unicodedata.normalize, decomposition)  # type: ignore[arg-type]
        text = _order_marks("".join(map(single, text)))
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def _has_long_run_of_marks(text: str) -> bool:
    runs = groupby(map(unicodedata.combining, text), key=bool)
    return any(are_marks and sum(1 for _ in run) > LONG_RUN for are_marks, run in runs)


def _order_marks(decomposed: str) -> str:
    """Return the text in canonical order: runs of marks sorted by their combining classes."""
    runs = groupby(decomposed, key=lambda char: unicodedata.combining(char) > 0)
    return "".join(
        "".join(sorted(run, key=unicodedata.combining) if are_marks else run)
        for are_marks, run in runs
    )


def change_between(pattern: Pattern, text: str, change: Normalizer) -> str:
    """Change what lies between the matches, piece by piece."""
    parts: list[str] = []
    at = 0
    for start, end in pattern.spans(text):
        parts += (change(text[at:start]), text[start:end])
        at = end
    return "".join([*parts, change(text[at:])])


def lowercase(text: str) -> str:
    """Lower all letters as Unicode 17 does, whatever version Python has."""
    # One by one: str.lower() of a whole text writes a final sigma otherwise.
    return "".join(map(str.lower, text.translate(_YOUNGER_CAPITALS)))


def strip(text: str, *, left: bool, right: bool) -> str:
    """Strip whitespace as Rust sees it."""
    text = text.lstrip(WHITESPACE) if left else text
    return text.rstrip(WHITESPACE) if right else text


def prepend(prefix: str, text: str) -> str:
    """Put the prefix before the text; an empty text stays empty."""
    return prefix + text if text else text
