"""The patterns by which byte-level tokenizers cut a text into words; GGUF stores only a name.

The patterns are those of each tokenizer.json; the names, and which share a pattern, llama.cpp's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = (
    rf"{_ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    + _SPACES
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN35 = (
    rf"{_ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _SPACES
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED_WORDS = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s"
)
_TEKKEN = _CASED_WORDS % ("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACES
_GPT4O = (
    _CASED_WORDS % (f"{_ENGLISH}?", f"{_ENGLISH}?")
    + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    + _SPACES
)
# llama.cpp's fallback for a file that names none: near to most tokenizers and equal to none.
_UNNAMED = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")


@dataclass(frozen=True)
class Style:
    """The meaning of a name."""

    pre_tokenizer: Json
    normalizer: Json | None = None
    ignore_merges: bool = False  # a word that is a token is that token, whatever merges say
    adds_bos: bool = False  # unless the file says otherwise


def byte_level(*, use_regex: bool) -> Json:
    """Return the section of tokenizer.json that turns bytes into letters."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def split_then_bytes(*patterns: str) -> Json:
    """Cuts by each pattern in turn, then turns bytes into letters."""
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, byte_level(use_regex=False)]}


_DIGITS_THEN_BYTES = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        byte_level(use_regex=True),
    ],
}


def _named(names: str, style: Style) -> dict[str, Style]:
    return dict.fromkeys(names.split(), style)


_NFC = {"type": "NFC"}
STYLES: dict[str, Style] = {
    **_named("gpt-2 phi-2 olmo mpt jais exaone4 modern-bert", Style(byte_level(use_regex=True))),
    **_named(
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 lfm2 pixtral",
        Style(split_then_bytes(_LLAMA3), ignore_merges=True, adds_bos=True),
    ),
    **_named("dbrx smaug-bpe glm4 chatglm-bpe", Style(split_then_bytes(_LLAMA3))),
    **_named("qwen2", Style(split_then_bytes(_QWEN2), normalizer=_NFC)),
    **_named("deepseek-r1-qwen stablelm2 hunyuan megrez", Style(split_then_bytes(_QWEN2))),
    **_named("qwen35", Style(split_then_bytes(_QWEN35), normalizer=_NFC)),
    **_named(
        "smollm refact starcoder command-r exaone codeshell minerva-7b", Style(_DIGITS_THEN_BYTES)
    ),
    **_named("tekken", Style(split_then_bytes(_TEKKEN), ignore_merges=True, adds_bos=True)),
    **_named("gpt-4o llama4 kanana2", Style(split_then_bytes(_GPT4O))),
    **_named("default", Style(split_then_bytes(*_UNNAMED))),
}


def known_names() -> Sequence[str]:
    """Return the known names, for messages."""
    return sorted(STYLES)
