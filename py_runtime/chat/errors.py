"""What can be wrong with a chat template."""

from py_runtime.base.errors import InpageError


class ChatTemplateError(InpageError):
    """It is missing or broken, or refuses the messages it was given."""

    code = "chat_template_error"
