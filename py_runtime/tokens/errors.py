"""What can be wrong with a tokenizer, a text or a chat template."""

from py_runtime.base.errors import InpageError


class TokenizerError(InpageError):
    """A tokenizer.json cannot be used; the text names the part of it."""

    code = "tokenizer_error"


class TextError(InpageError):
    """A text cannot be encoded, because it is not Unicode text."""

    code = "text_error"


class ChatTemplateError(InpageError):
    """A chat template is missing or broken, or refuses the messages it was given."""

    code = "chat_template_error"
