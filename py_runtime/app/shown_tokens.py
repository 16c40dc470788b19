"""Tokens as pages show them: the text that each adds, and a name where it adds none."""

import codecs
from collections.abc import Iterable
from typing import Any

from py_runtime.grammar.vocabulary import TokenBytes
from py_runtime.tokens import StreamDecoder, Tokenizer

Json = dict[str, Any]


class ShownTokens:
    """The tokens of one text, one after the other, and others that could stand in their place."""

    def __init__(
        self, tokenizer: Tokenizer, shown: Iterable[str] = (), ends: frozenset[int] = frozenset()
    ) -> None:
        """`shown` are control tokens whose names are text, `ends` those that end an answer."""
        self._tokenizer = tokenizer
        self._shown = frozenset(shown)
        self._ends = ends
        self._bytes = TokenBytes(tokenizer)
        self._text = StreamDecoder(tokenizer, shown=self._shown)
        self._begun = False
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> Json:
        """Describe the next token of the text."""
        adds = self._text.push(token)
        if self._bytes.is_special(token):
            self._utf8.reset()
        else:
            self._utf8.decode(self._bytes.of(token))
        self._begun = True
        return self._described(token, adds)

    def other(self, token: int) -> Json:
        """Describe a token that could come next instead."""
        if not self._begun or self._bytes.is_special(token):
            return self._described(
                token, StreamDecoder(self._tokenizer, shown=self._shown).push(token)
            )
        pending, _ = self._utf8.getstate()
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        return self._described(token, utf8.decode(pending + self._bytes.of(token)))

    def _described(self, token: int, adds: str) -> Json:
        """Return its text; `adds` is what it adds to the answer, where that is another."""
        own = self._bytes.of(token)
        if self._bytes.is_special(token):
            text = own.decode(errors="replace")
            kind: Json = {"special": True, **({"end": True} if token in self._ends else {})}
            return {"id": token, "text": text, **({} if adds == text else {"adds": adds}), **kind}
        if adds:
            return {"id": token, "text": adds}
        return {"id": token, "text": f"<{own.hex(' ')}>", "adds": "", "special": True}
