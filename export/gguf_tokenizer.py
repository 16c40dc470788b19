"""The tokenizer inside a GGUF file, as the tokenizer.json and tokenizer_config.json people know."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from export.errors import ExportError

Json = dict[str, Any]

_SPACE_SIGN = "▁"
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_NAMED_TOKENS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}


class TokenType(IntEnum):
    """As GGUF numbers them."""

    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5


@dataclass(frozen=True)
class Style:
    """What GGUF leaves to the name of a tokenizer's pre-tokenizer."""

    pre_tokenizer: Json
    normalizer: Json | None = None
    ignore_merges: bool = False
    adds_bos: bool = False  # unless the file says otherwise


def byte_level(*, use_regex: bool) -> Json:
    """The section of tokenizer.json that turns bytes into letters."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def split_then_bytes(pattern: str) -> Json:
    """Cuts by a pattern first, then turns bytes into letters."""
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, byte_level(use_regex=False)]}


_DIGITS_THEN_BYTES = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        byte_level(use_regex=True),
    ],
}
_STYLES = {
    "gpt-2": Style(byte_level(use_regex=True)),
    "llama-bpe": Style(split_then_bytes(_LLAMA3_SPLIT), ignore_merges=True, adds_bos=True),
    "qwen2": Style(split_then_bytes(_QWEN2_SPLIT), normalizer={"type": "NFC"}),
    "smollm": Style(_DIGITS_THEN_BYTES),
}


def read_tokenizer(metadata: Json) -> Json:
    """Both files, by name, from the metadata of a GGUF file."""
    fields = Fields(metadata)
    match fields.required("model"):
        case "gpt2":
            file, config = convert_byte_level(fields)
        case "llama":
            file, config = convert_sentence_piece(fields)
        case other:
            raise ExportError(
                f"the GGUF file has a tokenizer of the model {other!r}; only 'gpt2' (byte-level "
                "BPE) and 'llama' (SentencePiece BPE) are supported"
            )
    return {"tokenizer.json": file, "tokenizer_config.json": config}


class Fields:
    """The metadata tokenizer.ggml.*, with the tokens at hand."""

    def __init__(self, metadata: Json) -> None:
        self.metadata = metadata
        self.tokens: list[str] = self.required("tokens")
        self.types: list[int] = self.get("token_type", [1] * len(self.tokens))
        if len(self.types) != len(self.tokens):
            raise ExportError(
                f"the GGUF file has {len(self.tokens)} tokens, but {len(self.types)} token types"
            )

    def get(self, name: str, default: Any = None) -> Any:
        return self.metadata.get(f"tokenizer.ggml.{name}", default)

    def required(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise ExportError(f"the GGUF file has no tokenizer: tokenizer.ggml.{name} is missing")
        return value

    def vocabulary(self) -> dict[str, int]:
        return {
            token: token_id
            for token_id, token in enumerate(self.tokens)
            if self.types[token_id] != TokenType.UNUSED
        }

    def added_tokens(self) -> list[Json]:
        added = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED)
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return [
            {"id": token_id, "content": self.tokens[token_id], **flags}
            | {"special": kind != TokenType.USER_DEFINED}
            for token_id, kind in enumerate(self.types)
            if kind in added
        ]

    def named_token(self, name: str) -> str | None:
        """The token of a role such as bos_token, if the file names one."""
        token_id = self.get(_NAMED_TOKENS[name])
        if token_id is None:
            return None
        if token_id >= len(self.tokens):
            raise ExportError(f"the GGUF file's {name} has the id {token_id}, which no token has")
        return self.tokens[token_id]

    def config(self, *, adds_bos: bool) -> Json:
        """tokenizer_config.json."""
        config: Json = {"tokenizer_class": "PreTrainedTokenizerFast"}
        config |= {name: token for name in _NAMED_TOKENS if (token := self.named_token(name))}
        config["add_bos_token"] = self.get("add_bos_token", adds_bos)
        config["add_eos_token"] = self.get("add_eos_token", False)
        config["clean_up_tokenization_spaces"] = False
        template = self.metadata.get("tokenizer.chat_template")
        return config | ({"chat_template": template} if template else {})

    def template(self, config: Json) -> Json | None:
        """The post-processor that puts bos and eos around a text, where the config asks for it."""
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
        ids = {token: self.tokens.index(token) for token in ends if token}
        special = {
            token: {"id": token, "ids": [token_id], "tokens": [token]}
            for token, token_id in ids.items()
        }
        return {
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": special,
        }


def convert_byte_level(fields: Fields) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of GPT-2's kind; ExportError for an unknown style."""
    pre = fields.required("pre")
    if pre not in _STYLES:
        raise ExportError(
            f"the GGUF file's pre-tokenizer is {pre!r}; only {', '.join(_STYLES)} are supported"
        )
    style = _STYLES[pre]
    config = fields.config(adds_bos=style.adds_bos)
    model = {
        "ignore_merges": style.ignore_merges,
        "merges": [merge.split(" ") for merge in fields.required("merges")],
    }
    return whole_file(
        fields,
        model,
        normalizer=style.normalizer,
        pre_tokenizer=style.pre_tokenizer,
        post_processor=fields.template(config),
        decoder=byte_level(use_regex=True),
    ), config


def convert_sentence_piece(fields: Fields) -> tuple[Json, Json]:
    """(tokenizer.json, tokenizer_config.json) of Llama 2's kind, with its scores as merges."""
    config = fields.config(adds_bos=True)
    replaced = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE_SIGN}
    prepended = {"type": "Prepend", "prepend": _SPACE_SIGN}
    adds_space = fields.get("add_space_prefix", True)
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
        "merges": merges_by_score(fields),
    }
    return whole_file(
        fields,
        model,
        normalizer={"type": "Sequence", "normalizers": normalizers},
        post_processor=fields.template(config),
        decoder={"type": "Sequence", "decoders": decoders},
    ), config


def merges_by_score(fields: Fields) -> list[list[str]]:
    """SentencePiece merges whichever two tokens make the token of the best score."""
    scores = fields.required("scores")
    known = fields.vocabulary()
    merges = [
        (-scores[token_id], known[token[:cut]], known[token[cut:]])
        for token, token_id in known.items()
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]
    return [[fields.tokens[left], fields.tokens[right]] for _, left, right in sorted(merges)]


def whole_file(fields: Fields, model: Json, **parts: Json | None) -> Json:
    """A tokenizer.json with every section it must have; `parts` replace the empty ones."""
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
    base["model"] = defaults | {"vocab": fields.vocabulary()} | model
    return base
