"""Tokens in the page: tokenizer.json files of byte-pair encoding, without a compiled library."""

from py_runtime.tokens.errors import TextError, TokenizerError
from py_runtime.tokens.tokenizer import StreamDecoder, Tokenizer

__all__ = ["StreamDecoder", "TextError", "Tokenizer", "TokenizerError"]
