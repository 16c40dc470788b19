"""The two config files of a model: its chat template, and its end tokens."""

from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.chat.template import ChatTemplate, text_of
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.tokens import Tokenizer


class Config:
    """The settings for chatting in the two config files."""

    def __init__(self, tokenizer_config: dict[str, Any], config: dict[str, Any]) -> None:
        has_template = tokenizer_config.get("chat_template")
        self.chat_template = ChatTemplate.from_config(tokenizer_config) if has_template else None
        self._end_text = text_of(tokenizer_config.get("eos_token"))
        self._end_ids = config.get("eos_token_id")

    def end_tokens(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Return the tokens that end an answer: one or several ids, and the tokenizer's own."""
        ids = self._end_ids if isinstance(self._end_ids, list) else [self._end_ids]
        named = tokenizer.id_of(self._end_text) if self._end_text is not None else None
        return frozenset(token for token in (*ids, named) if isinstance(token, int))


def read_json(file: str, data: bytes | dict[str, Any]) -> dict[str, Any]:
    """Parse a file that holds an object; ModelError names the file."""
    if isinstance(data, dict):
        return data
    try:
        config = parse_strict_json(data)
    except ValueError as error:
        raise ModelError(f"{file} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ModelError(f"{file} is not a JSON object")
    return config
