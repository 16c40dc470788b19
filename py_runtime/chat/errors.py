"""Errors of a chat template."""

from py_runtime.base.errors import InpageError


class ChatTemplateError(InpageError):
    """An error of a template that is missing or broken, or refuses the messages it was given."""

    code = "chat_template_error"
