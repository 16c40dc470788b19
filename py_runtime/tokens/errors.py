"""What can be wrong with a tokenizer or a text."""

from py_runtime.base.errors import InpageError


class TokenizerError(InpageError):
    """A tokenizer.json cannot be used; the text names the part of it."""

    code = "tokenizer_error"


class TextError(InpageError):
    """A text cannot be encoded, because it is not Unicode text."""

    code = "text_error"
