"""WordPiece: from a word to ids, the longest token first; and such a file from a list of tokens."""

from collections.abc import Mapping
from typing import Any

from py_runtime.tokens.bpe import RememberedWords, read_vocabulary
from py_runtime.tokens.errors import TokenizerError
from py_runtime.tokens.section import Section

PREFIX = "##"  # of a token that goes on with a word
LONGEST_WORD = 100  # characters; a longer one is unknown
Json = dict[str, Any]


class WordPieceModel:
    """The `model` of tokenizer.json; words that were encoded are remembered."""

    def __init__(self, section: Section) -> None:
        self.vocabulary = read_vocabulary(section)
        self._prefix = section.get("continuing_subword_prefix", str, PREFIX)
        self._longest_word = section.get("max_input_chars_per_word", int, LONGEST_WORD)
        unknown = section.get("unk_token", str)
        if unknown not in self.vocabulary:
            raise section.error(f"unk_token {unknown!r} is not in the vocabulary")
        self._unknown = self.vocabulary[unknown]
        self._longest_piece = max(map(len, self.vocabulary))
        # A word that is cut off behind so many characters is as unknown as it was.
        self.longest_token = max(self._longest_word + 1, self._longest_piece)
        self.ids_of = RememberedWords(self)

    def ids(self, word: str) -> list[int]:
        if len(word) > self._longest_word:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            piece, end = self._longest_at(word, start)
            if piece is None:
                return [self._unknown]
            found.append(piece)
            start = end
        return found

    def _longest_at(self, word: str, start: int) -> tuple[int | None, int]:
        prefix = self._prefix if start else ""
        for end in range(min(len(word), start + self._longest_piece), start, -1):
            piece = self.vocabulary.get(prefix + word[start:end])
            if piece is not None:
                return piece, end
        return None, start


def wordpiece_file(vocabulary: Mapping[str, int], config: Json) -> Json:
    """Return BERT's tokenizer.json; `config` has the words of a tokenizer_config.json."""
    named = {
        role: config.get(f"{role}_token") or default
        for role, default in (("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]"))
    }
    for token in named.values():
        if not isinstance(token, str) or token not in vocabulary:
            raise TokenizerError(f"the vocabulary has no token {token!r:.100}")
    others = [config.get(f"{role}_token") or default for role, default in OTHERS]
    special = [token for token in (*named.values(), *others) if token in vocabulary]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": vocabulary[token], "content": token, "special": True, **flags}
        for token in sorted(set(special), key=vocabulary.__getitem__)
    ]
    around = [[named["cls"], vocabulary[named["cls"]]], [named["sep"], vocabulary[named["sep"]]]]
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": bool(config.get("tokenize_chinese_chars", True)),
            "strip_accents": config.get("strip_accents"),
            "lowercase": bool(config.get("do_lower_case", True)),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": around[0], "sep": around[1]},
        "decoder": {"type": "WordPiece", "prefix": PREFIX, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": named["unk"],
            "continuing_subword_prefix": PREFIX,
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": dict(vocabulary),
        },
    }


OTHERS = (("pad", "[PAD]"), ("mask", "[MASK]"))
