"""Tokens in the page: tokenizer.json files of byte-pair encoding, without a compiled library."""

from py_runtime.tokens.errors import ChatTemplateError, TextError, TokenizerError
from py_runtime.tokens.tokenizer import StreamDecoder, Tokenizer

__all__ = ["ChatTemplateError", "StreamDecoder", "TextError", "Tokenizer", "TokenizerError"]
