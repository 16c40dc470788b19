"""Text to ids and back, as a tokenizer.json says: the ids that the package `tokenizers` gives."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from py_runtime.tokens.added_tokens import AddedTokens, Span, read_added_tokens
from py_runtime.tokens.bpe import BpeModel
from py_runtime.tokens.decoders import build_decoder
from py_runtime.tokens.errors import TextError, TokenizerError
from py_runtime.tokens.normalizers import build_normalizer
from py_runtime.tokens.post_processors import build_post_processor
from py_runtime.tokens.pre_tokenizers import build_pre_tokenizer
from py_runtime.tokens.section import Section
from py_runtime.tokens.unigram import UnigramModel
from py_runtime.tokens.wordpiece import WordPieceModel


class Tokenizer:
    """A tokenizer.json; its padding and truncation are ignored, so a prompt is encoded as it is."""

    def __init__(self, section: Section) -> None:
        model = section.section("model")
        if model is None:
            raise section.error("model is missing")
        self._model = build_model(model)
        normalise = build_normalizer(section.section("normalizer"))
        has_added = section.fields.get("added_tokens") is not None
        listed = section.sections("added_tokens") if has_added else []
        tokens = read_added_tokens(listed, self._model.vocabulary)
        self._added = AddedTokens(tokens, normalise)
        self._pre_tokenize = build_pre_tokenizer(section.section("pre_tokenizer"))
        self._post_process = build_post_processor(section.section("post_processor"))
        self._start_decoding = build_decoder(section.section("decoder"))
        self._added_ids = {token.content: token.id for token in tokens}
        # Large vocabularies take some MB each time they are kept: once by tokens, once by ids.
        self._tokens = {token_id: token for token, token_id in self._model.vocabulary.items()}
        self._tokens.update(self._added.as_written)

    @classmethod
    def from_json(cls, source: str | bytes | dict[str, Any]) -> "Tokenizer":
        if not isinstance(source, dict):
            try:
                source = json.loads(source)
            except ValueError as error:
                raise TokenizerError(f"tokenizer.json is not JSON: {error}") from error
            except RecursionError:
                raise TokenizerError("tokenizer.json is nested too deeply") from None
        return cls(Section.of("", source))

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocabulary_size:,} tokens)"

    @property
    def vocabulary_size(self) -> int:
        """Return one more than the largest id."""
        return max(self._tokens, default=-1) + 1

    def id_of(self, token: str) -> int | None:
        return self._added_ids.get(token, self._model.vocabulary.get(token))

    def share_in_common(self, other: "Tokenizer") -> float:
        """Return the share of ids that stand for the same token in both, from 0 to 1."""
        same = sum(other._tokens.get(each) == token for each, token in self._tokens.items())
        larger = max(len(self._tokens), len(other._tokens), 1)
        return float(same / larger)

    @property
    def control_tokens(self) -> set[str]:
        """The spellings of its special tokens, such as `<|im_end|>`."""
        return self._added.special

    def encode(
        self,
        text: str,
        add_special_tokens: bool = True,
        literal: Sequence[Span] = (),
        most: int | None = None,
    ) -> list[int]:
        """Encode a text; what spells a special token in a `literal` span is text like any other.

        A caller with no use for more than `most` tokens gets the first ones of a longer text, more
        than `most` of them; the rest of the text is not looked at.
        """
        refuse_surrogates(text)
        ids: list[int] = []
        enough = sys.maxsize if most is None else most
        for piece in self._added.split(text, literal):
            if piece.token_id is not None:
                ids.append(piece.token_id)
            else:
                self._encode_words(self._pre_tokenize(piece.text, piece.starts_text), ids, enough)
            if len(ids) > enough:
                break
        return self._post_process(ids, add_special_tokens)

    def _encode_words(self, words: Iterable[str], ids: list[int], enough: int) -> None:
        """Append the ids of the words, until there are more than enough."""
        ids_of, longest = self._model.ids_of, self._model.longest_token
        for word in words:
            left = enough - len(ids)
            first = word[: longest * (left + 1)]
            found = ids_of[first]
            if len(first) < len(word) and len(found) <= left:  # some characters have no token
                found = ids_of[word]
            ids += found
            if len(ids) > enough:
                return

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        stream = StreamDecoder(self, skip_special_tokens)
        return stream.push_all(ids) + stream.finish()


class StreamDecoder:
    """A decoder of ids as they arrive; bytes that are no whole character yet are held back."""

    def __init__(
        self, tokenizer: Tokenizer, skip_special_tokens: bool = True, shown: Iterable[str] = ()
    ) -> None:
        """`shown` are special tokens that are not skipped."""
        self._tokens = tokenizer._tokens
        self._skipped = tokenizer._added.special.difference(shown) if skip_special_tokens else ()
        self._decoder = tokenizer._start_decoding()

    def push(self, token_id: int) -> str:
        """Return the text that is certain now; an id that no token has adds none."""
        return self.push_all([token_id])

    def push_all(self, ids: Iterable[int]) -> str:
        tokens = map(self._tokens.get, ids)
        return self._decoder.push(
            [token for token in tokens if token is not None and token not in self._skipped]
        )

    def finish(self) -> str:
        """Return what was held back."""
        return self._decoder.finish()


def build_model(section: Section) -> BpeModel | WordPieceModel | UnigramModel:
    """Build what encodes words; older files of BPE name no type."""
    match section.get("type", str, "BPE"):
        case "WordPiece":
            return WordPieceModel(section)
        case "Unigram":
            return UnigramModel(section)
        case _:
            return BpeModel(section)


def refuse_surrogates(text: str) -> None:
    """TextError names the character: JavaScript's texts may hold halves of pairs."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X} at character {error.start}"
        raise TextError(
            f"the text has half of a surrogate pair, {found}, which no token has"
        ) from None
