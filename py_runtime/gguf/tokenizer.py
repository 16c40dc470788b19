"""The tokenizer inside a GGUF file, as the tokenizer.json and tokenizer_config.json people know."""

import base64
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from py_runtime.gguf.errors import UnsupportedGgufError, listed, shown
from py_runtime.gguf.metadata import Metadata
from py_runtime.gguf.pre_tokenizers import STYLES, byte_level, known_names
from py_runtime.tokens.errors import TokenizerError
from py_runtime.tokens.wordpiece import wordpiece_file

Json = dict[str, Any]

PREFIX = "tokenizer.ggml."
TEMPLATE = "tokenizer.chat_template"
_SPACE_SIGN = "▁"
_BYTE_TOKEN = re.compile("<0x[0-9A-F]{2}>")
_NAMED_TOKENS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
# A file names one end; models write others, too, which llama.cpp knows by how they are spelled.
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
END_SPELLINGS = frozenset(
    {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "[e~[",
        "<\N{FULLWIDTH VERTICAL LINE}end▁of▁sentence\N{FULLWIDTH VERTICAL LINE}>",
        # Code models end a gap, a file or a repository with these.
        "<|fim_pad|>",
        "<fim-pad>",
        "<fim_pad>",
        "<PAD>",
        "[PAD]",
        "<|fim_repo|>",
        "<|repo_name|>",
        "<fim-repo>",
        "<REPO>",
        "<reponame>",
        "<|file_sep|>",
    }
)

# The spelling of other markers of turns: <|im_start|>, <|turn>, <turn|>; DeepSeek's have wide bars.
_BAR = "[|\N{FULLWIDTH VERTICAL LINE}]"
_MARKER = re.compile(rf"<{_BAR}\w[\w:.-]*{_BAR}?>|<\w[\w:.-]*{_BAR}>|<start_of_turn>")


class TokenType(IntEnum):
    """The types of tokens, as GGUF numbers them."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


ADDED = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED)


def read_tokenizer(metadata: Metadata) -> Json:
    """Return both files, by name; GgufError says what is wrong with the metadata."""
    fields = Fields(metadata)
    model = metadata.text(f"{PREFIX}model")
    if model == "gpt2":
        file, config = convert_byte_level(fields)
    elif model == "llama":
        adds_space = fields.flag("add_space_prefix", True)
        file, config = convert_sentence_piece(fields, merges_by_score(fields), adds_space)
    elif model == "gemma4":
        # llama.cpp also cuts at newlines, across which no merge of Gemma's reaches.
        file, config = convert_sentence_piece(fields, read_merges(fields), adds_space=False)
    elif model == "bert":
        file, config = convert_word_pieces(fields)
    elif model == "t5":
        file, config = convert_unigram(fields)
    else:
        raise UnsupportedGgufError(
            f"{metadata.file} has a tokenizer of the model {shown(model)}; only 'gpt2' (byte-level "
            "BPE), 'llama' (SentencePiece BPE), 'gemma4', 'bert' (WordPiece) and 't5' (Unigram) "
            "are supported",
            "get another model",
        )
    return {"tokenizer.json": file, "tokenizer_config.json": config}


def token_ids(metadata: Metadata) -> dict[str, int | list[int]]:
    """Return the ids that a config.json names: where a text begins, and all ends of an answer."""
    ids: dict[str, int | list[int]] = {"eos_token_id": sorted(end_tokens(metadata))}
    begins = f"{PREFIX}bos_token_id"
    if begins in metadata:
        last = len(metadata.texts(f"{PREFIX}tokens")) - 1
        ids["bos_token_id"] = metadata.integer(begins, 0, last)
    return ids


def end_tokens(metadata: Metadata) -> frozenset[int]:
    """Return every token that ends an answer, by its key or its spelling."""
    tokens = metadata.texts(f"{PREFIX}tokens")
    named = {
        metadata.integer(f"{PREFIX}{key}", 0, len(tokens) - 1)
        for key in END_KEYS
        if f"{PREFIX}{key}" in metadata
    }
    spelled = {text: number for number, text in enumerate(tokens) if text in END_SPELLINGS}
    by_channels = ({"<|return|>", "<|call|>"}, {"<|calls|>", "<|flush|>"})
    if any(ends.issubset(spelled) for ends in by_channels):
        spelled.pop("<|end|>", None)  # ends one of an answer's channels there
    if "<|tool_response>" in spelled:
        spelled.pop("</s>", None)
    return frozenset(named | set(spelled.values()))


class Fields:
    """The metadata tokenizer.ggml.*, with the tokens at hand."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.tokens = metadata.texts(f"{PREFIX}tokens")
        self.types = self._types()
        self._mark_control_tokens()
        self.vocabulary = self._vocabulary()

    def has(self, name: str) -> bool:
        return PREFIX + name in self.metadata

    def flag(self, name: str, default: bool) -> bool:
        return self.metadata.flag(PREFIX + name) if self.has(name) else default

    def check_length(self, name: str, length: int) -> None:
        if length != len(self.tokens):
            raise self.metadata.fault(
                PREFIX + name, f"has {length} items, but there are {len(self.tokens)} tokens"
            )

    def _types(self) -> list[int]:
        name = "token_type"
        if not self.has(name):
            return [TokenType.NORMAL] * len(self.tokens)
        types: list[int] = self.metadata.integers(PREFIX + name).tolist()
        self.check_length(name, len(types))
        return types

    def _mark_control_tokens(self) -> None:
        """Mark ends of an answer and markers of turns, which some files list as ordinary tokens.

        In a prompt they must be one token each, which no merge makes of them, and no text of a
        user's.
        """
        ends = end_tokens(self.metadata)
        for number, token in enumerate(self.tokens):
            is_plain = self.types[number] == TokenType.NORMAL
            is_end = number in ends and self.types[number] == TokenType.USER_DEFINED
            if is_end or (is_plain and (number in ends or _MARKER.fullmatch(token))):
                self.types[number] = TokenType.CONTROL

    def _vocabulary(self) -> dict[str, int]:
        """Ids by spelling: no two tokens share one, but for those that are never used."""
        vocabulary: dict[str, int] = {}
        for number, token in enumerate(self.tokens):
            if self.types[number] == TokenType.UNUSED or not token:
                continue
            if vocabulary.setdefault(token, number) != number:
                raise self.metadata.fault(
                    f"{PREFIX}tokens",
                    f"has {shown(token)} twice, at {vocabulary[token]} and at {number}",
                )
        return vocabulary

    def added_tokens(self) -> list[Json]:
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return [
            {"id": number, "content": self.tokens[number], **flags}
            | {"special": kind != TokenType.USER_DEFINED}
            for number, kind in enumerate(self.types)
            if kind in ADDED and self.tokens[number]
        ]

    def named_token(self, name: str) -> str | None:
        """Return the token of a role such as bos_token, if the file names one."""
        key = _NAMED_TOKENS[name]
        if not self.has(key):
            return None
        return self.tokens[self.metadata.integer(PREFIX + key, 0, len(self.tokens) - 1)]

    def config(self, *, adds_bos: bool) -> Json:
        """tokenizer_config.json."""
        config: Json = {"tokenizer_class": "PreTrainedTokenizerFast"}
        config |= {name: token for name in _NAMED_TOKENS if (token := self.named_token(name))}
        config["add_bos_token"] = self.flag("add_bos_token", adds_bos)
        config["add_eos_token"] = self.flag("add_eos_token", False)
        config["clean_up_tokenization_spaces"] = False
        template = self.metadata.text(TEMPLATE) if TEMPLATE in self.metadata else ""
        return config | ({"chat_template": template} if template else {})

    def template(self, config: Json) -> Json | None:
        """Return the post-processor for bos and eos around a text, if the config asks for it."""
        ends = [
            config.get(name) if config[f"add_{name}"] else None
            for name in ("bos_token", "eos_token")
        ]
        if not any(ends):
            return None
        around: list[list[Json]] = [
            [{"SpecialToken": {"id": token, "type_id": 0}}] if token else [] for token in ends
        ]
        single = [*around[0], {"Sequence": {"id": "A", "type_id": 0}}, *around[1]]
        pair = [*single, *around[0], {"Sequence": {"id": "B", "type_id": 1}}, *around[1]]
        special = {
            token: {"id": token, "ids": [self.tokens.index(token)], "tokens": [token]}
            for token in ends
            if token
        }
        return {
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": special,
        }


def convert_byte_level(fields: Fields) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of GPT-2's kind."""
    metadata = fields.metadata
    pre = metadata.text(f"{PREFIX}pre") if fields.has("pre") else "default"
    if pre not in STYLES:
        raise UnsupportedGgufError(
            f"{metadata.file}: its pre-tokenizer is {shown(pre)}, which is not supported",
            f"these are: {', '.join(known_names())}",
        )
    style = STYLES[pre]
    config = fields.config(adds_bos=style.adds_bos)
    model = {"ignore_merges": style.ignore_merges, "merges": read_merges(fields)}
    return whole_file(
        fields,
        model,
        normalizer=style.normalizer,
        pre_tokenizer=style.pre_tokenizer,
        post_processor=fields.template(config),
        decoder=byte_level(use_regex=True),
    ), config


def read_merges(fields: Fields) -> list[str]:
    """Return the merges as they are stored, "left right": both and what they make are tokens."""
    key, known = f"{PREFIX}merges", fields.vocabulary
    merges = fields.metadata.texts(key)
    for number, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if left not in known or right not in known or left + right not in known:
            raise fields.metadata.fault(
                key, f"has {shown(merge)} at {number}, which joins no two tokens into one"
            )
    return merges


def convert_sentence_piece(
    fields: Fields, merges: Sequence[str | list[str]], adds_space: bool
) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of Llama 2's kind: characters, and bytes for others.

    `adds_space`: in front of a text.
    """
    check_bytes(fields)
    config = fields.config(adds_bos=True)
    replaced = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE_SIGN}
    prepended = {"type": "Prepend", "prepend": _SPACE_SIGN}
    normalizers = [prepended, replaced] if adds_space else [replaced]
    decoders: list[Json] = [
        {"type": "Replace", "pattern": {"String": _SPACE_SIGN}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if adds_space:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    model = {
        "unk_token": fields.named_token("unk_token"),
        "fuse_unk": True,
        "byte_fallback": True,
        "merges": merges,
    }
    return whole_file(
        fields,
        model,
        normalizer={"type": "Sequence", "normalizers": normalizers},
        post_processor=fields.template(config),
        decoder={"type": "Sequence", "decoders": decoders},
    ), config


def convert_word_pieces(fields: Fields) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of BERT's kind.

    Files mark tokens that begin a word and leave the others bare: the other way round. They do not
    say whether letters are made small: they are if no token has a capital.
    """
    vocabulary = {_word_piece(fields, token): at for token, at in fields.vocabulary.items()}
    roles = {"cls": ("cls", "bos"), "sep": ("seperator", "eos"), "unk": ("unknown",)}
    roles |= {"pad": ("padding",), "mask": ("mask",)}
    config: Json = {"tokenizer_class": "BertTokenizer"}
    for role, names in roles.items():
        found = [name for name in names if fields.has(f"{name}_token_id")]
        if found:
            key = f"{PREFIX}{found[0]}_token_id"
            place = fields.metadata.integer(key, 0, len(fields.tokens) - 1)
            config[f"{role}_token"] = _word_piece(fields, fields.tokens[place])
    special = {token for role, token in config.items() if role.endswith("_token")}
    words = (token for token in vocabulary if token not in special and token[0] != "[")
    config["do_lower_case"] = all(word == word.lower() for word in words)
    try:
        return wordpiece_file(vocabulary, config), config
    except TokenizerError as error:
        raise fields.metadata.fault(f"{PREFIX}tokens", f"is no vocabulary: {error}") from None


def _word_piece(fields: Fields, token: str) -> str:
    is_special = fields.types[fields.vocabulary.get(token, 0)] == TokenType.CONTROL
    if is_special or (token.startswith("[") and token.endswith("]")):
        return token
    begins_word = token.startswith(_SPACE_SIGN) and token != _SPACE_SIGN
    return token[1:] if begins_word else f"##{token}"


def convert_unigram(fields: Fields) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of multilingual encoders' kind."""
    metadata, config = fields.metadata, fields.config(adds_bos=True)
    scores = metadata.numbers(f"{PREFIX}scores").tolist()
    fields.check_length("scores", len(scores))
    last = len(fields.tokens) - 1
    steps: list[Json] = []
    if fields.has("precompiled_charsmap"):
        compiled = metadata.integers(f"{PREFIX}precompiled_charsmap").astype(np.uint8).tobytes()
        text = base64.b64encode(compiled).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": text})
    metaspace = {"type": "Metaspace", "replacement": _SPACE_SIGN, "prepend_scheme": "always"}
    cuts = [{"type": "WhitespaceSplit"}, {**metaspace, "split": True}]
    file = whole_file(
        fields,
        {},
        normalizer={"type": "Sequence", "normalizers": steps},
        pre_tokenizer={"type": "Sequence", "pretokenizers": cuts},
        post_processor=fields.template(config),
        decoder={**metaspace, "split": True},
    )
    file["model"] = {
        "type": "Unigram",
        "unk_id": metadata.integer(f"{PREFIX}unknown_token_id", 0, last),
        "vocab": [list(scored) for scored in zip(fields.tokens, scores, strict=True)],
    }
    return file, config


def check_bytes(fields: Fields) -> None:
    """Tokens for bytes are spelled as the decoder reads them, all 256 of them or none."""
    found = {
        token
        for token, number in fields.vocabulary.items()
        if fields.types[number] == TokenType.BYTE
    }
    wrong = [shown(token) for token in found if not _BYTE_TOKEN.fullmatch(token)]
    if wrong:
        raise fields.metadata.fault(
            f"{PREFIX}tokens",
            f"has tokens for bytes that are not among <0x00> to <0xFF>: {listed(sorted(wrong))}",
        )
    if found and len(found) < 256:
        raise fields.metadata.fault(
            f"{PREFIX}tokens", f"has tokens for {len(found)} bytes, not for all 256"
        )


def merges_by_score(fields: Fields) -> list[list[str]]:
    """SentencePiece merges whichever two tokens make the token of the best score."""
    scores = fields.metadata.numbers(f"{PREFIX}scores").tolist()
    fields.check_length("scores", len(scores))
    known, unmade = fields.vocabulary, (TokenType.CONTROL, TokenType.UNKNOWN)
    merges = [
        (-scores[number], known[token[:cut]], known[token[cut:]])
        for token, number in known.items()
        if fields.types[number] not in unmade  # these are written by templates, and no text's
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]
    return [[fields.tokens[left], fields.tokens[right]] for _, left, right in sorted(merges)]


def whole_file(fields: Fields, model: Json, **parts: Json | None) -> Json:
    """Return a tokenizer.json with every section it must have; `parts` replace the empty ones."""
    base: Json = {"version": "1.0", "truncation": None, "padding": None}
    base |= {"normalizer": None, "pre_tokenizer": None} | parts
    defaults: Json = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    }
    base["added_tokens"] = fields.added_tokens()
    base["model"] = defaults | {"vocab": fields.vocabulary} | model
    return base
