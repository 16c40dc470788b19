"""Chat templates: from messages to the one text a model was trained to continue.

They are programs that come with a model, so they run in jinja2's sandbox, set up as the field has
settled on: what `transformers` renders, this renders.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py_runtime.chat import plain_markup
from py_runtime.chat.bounds import shorten
from py_runtime.chat.errors import ChatTemplateError

if TYPE_CHECKING:
    from py_runtime.chat.environment import Render

SPECIAL_TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


class ChatTemplate:
    """A template, compiled when it is first rendered: jinja2 takes long to import."""

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens or {})  # such as {"bos_token": "<s>"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ChatTemplate":
        """Take the template of a tokenizer_config.json; of several, the one named default."""
        source = config.get("chat_template")
        if isinstance(source, list):
            named = [entry for entry in source if isinstance(entry, dict)]
            defaults = [entry for entry in named if entry.get("name") == "default"]
            source = defaults[-1].get("template") if defaults else None
        if not isinstance(source, str):
            raise ChatTemplateError("tokenizer_config.json has no chat_template")
        tokens = {name: text_of(config.get(name)) for name in SPECIAL_TOKENS}
        return cls(source, {name: token for name, token in tokens.items() if token is not None})

    def render(
        self,
        /,  # a variable may have that name
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """`messages` are like {"role": "user", "content": "Hi"}; tools are JSON schemas.

        `variables` are what a template asks for beyond these, such as enable_thinking.
        """
        known = {
            "messages": messages,
            "tools": tools,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return self._render(self.special_tokens | variables | known)
        except ChatTemplateError:
            raise
        except Exception as error:  # it is a program: it may fail in any way
            fault = f"the chat template refuses these messages: {error}"
            raise ChatTemplateError(shorten(fault)) from error

    @cached_property
    def _render(self) -> "Render":
        # Imported with the first template: jinja2 takes longer to import than all the rest.
        plain_markup.stand_in_where_missing()
        from py_runtime.chat.environment import compile_template

        return compile_template(self.source)


def text_of(token: Any) -> str | None:
    """Return the text of a config's special token, which may be an object with it as content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None
