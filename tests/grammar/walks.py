"""Random generations: a model that says anything at all, as long as it is allowed."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np

from py_runtime.grammar import Grammar
from tests.grammar.vocabularies import end_of, texts_of, tokenizer_of

Chooser = Callable[[np.ndarray, np.random.Generator], int]


def uniform(name: str) -> Chooser:
    return lambda allowed, rng: int(rng.choice(np.flatnonzero(allowed)))


def stubborn(name: str) -> Chooser:
    """Return a chooser with constant favourites: it loops wherever it can."""
    favour = np.random.default_rng(5).permutation(texts_of(name).size)
    return lambda allowed, rng: int(np.argmax(np.where(allowed, favour, -1)))


@cache
def nasty_tokens(name: str) -> np.ndarray:
    """Tokens that open, escape, indent, or end in the middle of a character."""
    nasty = np.zeros(texts_of(name).size, np.bool_)
    for token, text in texts_of(name).texts.items():
        broken = "\ufffd" in text.decode(errors="replace")
        nasty[token] = broken or bool(re.search(rb'[\[{\\,\n]|^"|^[+-]?\d+$|^ +$', text))
    return nasty


def adversarial(name: str) -> Chooser:
    nasty = nasty_tokens(name)

    def choose(allowed: np.ndarray, rng: np.random.Generator) -> int:
        wanted = np.flatnonzero(allowed & nasty)
        return int(rng.choice(wanted if wanted.size else np.flatnonzero(allowed)))

    return choose


CHOOSERS = (uniform, stubborn, adversarial)


def walk(name: str, grammar: Grammar, choose: Chooser, budget: int, seed: int = 0) -> str:
    """Return the text of one generation of at most `budget` tokens."""
    rng = np.random.default_rng(seed)
    tokens: list[int] = []
    while len(tokens) < budget and not grammar.complete:
        allowed = grammar.allowed(budget - len(tokens))
        assert allowed.any()
        token = choose(allowed, rng)
        assert allowed[token]
        grammar.advance(token)
        if token == end_of(name):
            break
        tokens.append(token)
    assert grammar.whole
    text = tokenizer_of(name).decode(tokens, skip_special_tokens=False)
    written = b"".join(texts_of(name).texts[token] for token in tokens)
    assert text.lstrip(" ") == written.decode().lstrip(" ")
    return text


def accepts(name: str, grammar: Grammar, text: str) -> bool:
    """Return whether the text is allowed token by token, and the end after it."""
    tokens = tokenizer_of(name).encode(text, add_special_tokens=False)
    for index, token in enumerate(tokens):
        if not grammar.allowed(len(tokens) + 40 - index)[token]:
            return False
        grammar.advance(token)
    return bool(grammar.allowed()[end_of(name)])
