"""Chat templates render as `transformers` renders them, and a bad one is a clear error."""

from typing import Any

import pytest
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerFast

from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.template import ChatTemplate
from tests.chat.chats import CALLS, SPECIAL_TOKENS, TEMPLATES, USER
from tests.runners import Runner
from tests.tokens.reference import reference, smollm2_metadata

pytestmark = pytest.mark.torch

IN_RUNTIME = "tests.tokens.in_runtime"


def rendered_by_transformers(source: str, call: dict[str, Any]) -> str:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=reference("gpt2"), **SPECIAL_TOKENS)
    options = {name: value for name, value in call.items() if name != "messages"}
    try:
        return tokenizer.apply_chat_template(
            call["messages"], chat_template=source, tokenize=False, **options
        )
    except (TemplateError, TypeError) as error:
        return f"refused: the chat template refuses these messages: {error}"


@pytest.mark.parametrize("name", [*TEMPLATES, "SmolLM2"])
def test_renders_as_transformers_does(runner: Runner, name: str) -> None:
    real = smollm2_metadata().text("tokenizer.chat_template")
    source = TEMPLATES.get(name, real)
    config = {"chat_template": source, **SPECIAL_TOKENS}
    *ours, escaper = runner.run(IN_RUNTIME, "render_all", config=config, calls=CALLS)
    expected = [rendered_by_transformers(source, call) for call in CALLS]
    assert ours == expected
    assert sum("refused" in text for text in expected) < len(CALLS) / 2
    in_page = runner.name == "page"
    assert escaper == ("py_runtime.chat.plain_markup" if in_page else "markupsafe")


BROKEN = {
    "{% for x in": "the chat template is broken in line 1: unexpected 'end of template'",
    "a\n{{ 'x' | escape }}": "the chat template is broken in line 2: No filter named 'escape'.",
    "{{ raise_exception('no, thanks') }}": ("the chat template refuses these messages: no, thanks"),
    "{{ messages.append(1) }}": (
        "the chat template refuses these messages: access to attribute 'append' of 'list' object "
        "is unsafe."
    ),
    "{{ ''.__class__.__mro__ }}": (
        "the chat template refuses these messages: access to attribute '__class__' of 'str' object "
        "is unsafe."
    ),
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}": (
        "the chat template refuses these messages: a namespace of a chat template cannot hold "
        "'__class__'"
    ),
    "{{ 1 / 0 }}": "the chat template refuses these messages: division by zero",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_template_says_what_and_where(source: str) -> None:
    with pytest.raises(ChatTemplateError) as caught:
        ChatTemplate(source).render([USER])
    assert str(caught.value) == BROKEN[source]


def test_a_config_names_its_template_and_tokens() -> None:
    named = [
        {"name": "tool_use", "template": "tools"},
        {"name": "default", "template": "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}"},
    ]
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": None}
    assert (
        ChatTemplate.from_config({**config, "chat_template": named}).render([USER]) == "<s>|</s>|"
    )


@pytest.mark.parametrize(
    "found",
    [None, 1, {}, [], [1, "default"], [{"name": "default"}], [{"name": ["x"], "template": "x"}]],
)
def test_a_config_without_a_template(found: object) -> None:
    with pytest.raises(ChatTemplateError, match=r"tokenizer_config.json has no chat_template"):
        ChatTemplate.from_config({"eos_token": "</s>", "chat_template": found})


def test_html_is_refused_where_markupsafe_is_missing() -> None:
    from py_runtime.chat import plain_markup

    assert plain_markup.soft_str(3) == "3"
    for make in (plain_markup.Markup, plain_markup.escape):
        with pytest.raises(TypeError, match="there is no HTML to escape"):
            make("<b>")
