"""The places of messages' contents in a rendered prompt."""

import pytest

from py_runtime.chat.content_spans import ContentSpan, find_contents, wrap_content
from py_runtime.chat.request import ChatRequest
from py_runtime.chat.template import ChatTemplate
from py_runtime.model.chat_prompts import ChatPrompts
from py_runtime.tokens import Tokenizer

CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content%s }}</>{% endfor %}<assistant>"
TOKENIZER = Tokenizer.from_json({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})
MESSAGES = [{"role": "system", "content": "user"}, {"role": "user", "content": " hi  "}]


def contents(template: str) -> list[str]:
    prompts = ChatPrompts("toy", ChatTemplate(template), TOKENIZER)
    text, spans = prompts.contents(MESSAGES, ChatRequest())
    return [text[span.start : span.stop] for span in spans]


@pytest.mark.parametrize("filters", ["", "|trim"])
def test_contents_are_found_and_not_words_of_the_template(filters: str) -> None:
    assert contents(CHAT.replace("%s", filters)) == ["user", "hi"]


def test_none_are_found_where_a_template_changes_contents() -> None:
    assert contents(CHAT.replace("%s", "|title")) == []
    assert contents(CHAT.replace("%s", "|length")) == []


def test_marks_of_a_text_itself_are_left_alone() -> None:
    odd = "a\ufdd2b"
    assert wrap_content(0, odd) == odd
    assert wrap_content(0, "  ") == "  "


def test_a_mark_without_its_pair_is_ignored() -> None:
    whole = wrap_content(3, " ab ")
    assert find_contents(f"x{whole}y") == ("x ab y", [ContentSpan(3, 2, 4)])
    assert find_contents(f"x{whole[:-2]}") == ("x ab", [])
