"""Words of texts and questions, as they are looked for."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

# Letters of scripts that put no blanks between words.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
RUN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
IS_UNSPACED = re.compile(f"[{UNSPACED}]")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # in a name of code, as in maxTokens
ENDINGS = ("es", "s")
LEAST_STEM = 4  # letters that remain of a word whose ending is left out
KEPT = 100_000  # words whose spelling is remembered


def count_words(text: str) -> Counter[str]:
    """Count the words of a text, each in one spelling.

    A name in code is itself and its parts: maxTokens is max and tokens, too. Of scripts without
    blanks, two neighbouring letters are a word.
    """
    counts: Counter[str] = Counter()
    for run, times in Counter(runs_of(text)).items():
        for word in words_of(run):
            counts[word] += times
    return counts


def runs_of(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, in their order."""
    found: list[str] = RUN.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))
    return found


@lru_cache(KEPT)
def words_of(run: str) -> tuple[str, ...]:
    """Return the words that a run stands for, each in one spelling."""
    if IS_UNSPACED.match(run):
        return tuple(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    parts = HUMP.split(run)
    return tuple(stem(each.casefold()) for each in ([run, *parts] if len(parts) > 1 else parts))


def stem(word: str) -> str:
    """Leave out the ending of a plural, as English and some other languages form it."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM and word[-2:] != "ss":
            return word[: -len(ending)]
    return word
