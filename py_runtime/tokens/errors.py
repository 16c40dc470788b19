"""Errors of a tokenizer or a text."""

from py_runtime.base.errors import InpageError


class TokenizerError(InpageError):
    """An error of a tokenizer.json that cannot be used; its text names the part."""

    code = "tokenizer_error"


class TextError(InpageError):
    """An error of a text that cannot be encoded, because it is not Unicode text."""

    code = "text_error"
