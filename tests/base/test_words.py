"""Texts for people: how long they may be, what is cut, and what is left out."""

import json
from typing import Any

import pytest

from py_runtime.base import html, markdown, nesting
from py_runtime.base.concurrency import together
from py_runtime.base.errors import ContextLengthError, RequestError, ShaderError, ShaderMessage
from py_runtime.base.markdown import MAX_CHARACTERS, code, plain, table
from py_runtime.base.nesting import MAX_DEPTH, refuse_deep
from py_runtime.base.short_texts import first_of, short
from py_runtime.base.sizes import counted, in_words, parse_count
from py_runtime.base.tool_call import ToolCall, new_id
from tests.runners import wait


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        *((0, "0 bytes"), (99, "99 bytes"), (999, "999 bytes"), (1000, "1.0 kB")),
        *((1001, "1.0 kB"), (99_900, "99.9 kB"), (100_000, "100 kB"), (999_000, "999 kB")),
        *((10**6, "1.0 MB"), (10**9, "1.0 GB"), (10**12, "1.0 TB"), (10**16, "10000 TB")),
    ],
)
def test_sizes(nbytes: int, words: str) -> None:
    assert in_words(nbytes) == words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None)),
        *(("", None), ("-1", None), ("1.5", None), ("²", None), ("٣", None), (" 1", None)),
    ],
)
def test_counts_of_strangers(text: str, count: int | None) -> None:
    assert parse_count(text) == count


def test_counts() -> None:
    assert [counted(count, "token") for count in (0, 1, 2)] == ["0 tokens", "1 token", "2 tokens"]
    assert first_of(["a", "b", "c"], 3) == ["a", "b", "c"]
    assert first_of(["a", "b", "c"], 2) == ["a", "b", "and 1 more"]


def test_what_strangers_wrote_is_cut() -> None:
    assert short("x" * 78) == repr("x" * 78)  # with its quotes, 80
    assert short("x" * 79) == f"'{'x' * 76}..."
    assert short("abcdef", 6) == "'ab..."


def test_a_table_in_markdown() -> None:
    assert table(["a", "b:"], [["1", "2"]]) == "| a | b |\n| --- | --: |\n| 1 | 2 |"
    assert table(["a"], []) == ""


def test_a_long_table_in_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MAX_ROWS", 2)
    assert table(["a"], [["1"], ["2"]]).endswith("| 2 |")
    assert table(["a"], [["1"], ["2"], ["3"]]).endswith("| 2 |\n\nand 1 more.")


def test_texts_in_markdown() -> None:
    assert code("a`b|c\nd") == "`a·b·c·d`"
    assert code("") == "`·`"
    assert code("x" * MAX_CHARACTERS) == f"`{'x' * MAX_CHARACTERS}`"
    assert code("x" * MAX_CHARACTERS + "y") == f"`{'x' * MAX_CHARACTERS}…`"
    assert plain("a*b_[c]|d`e é") == r"a\*b\_\[c\]\|d\`e é"
    assert plain("abc", 2) == "ab…"
    assert plain("a\x1bb") == "a·b"


def test_a_table_in_html(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_ROWS", 2)
    assert html.as_html("T", ["a", "", "b"]) == "<div><strong>T</strong> a · b</div>"
    assert "<table>" not in html.as_html("T", [], ["head"])
    whole = html.as_html("T", [], ["head"], [1], [2])
    assert whole.endswith("<tr><th>head</th></tr><tr><td>1</td></tr><tr><td>2</td></tr></table>")
    assert html.as_html("T", [], ["head"], [1], [2], [3]).endswith("<div>and 1 more</div>")


def nested(levels: int, kind: str) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"a": value}
    return value


@pytest.mark.parametrize("kind", ["list", "object"])
def test_how_deep_json_may_go(kind: str) -> None:
    refuse_deep(nested(MAX_DEPTH - 1, kind), "it", "p")
    with pytest.raises(RequestError, match=f"it is nested more than {nesting.MAX_DEPTH}") as caught:
        refuse_deep(nested(MAX_DEPTH, kind), "it", "p")
    assert caught.value.facts() == {"param": "p"}
    assert RequestError("x").facts() == {"param": None}


def test_a_call_of_a_tool() -> None:
    call = ToolCall.of("look", {"a": "é", "b": [1]})
    assert call is not None
    assert (call.name, call.arguments) == ("look", '{"a": "é", "b": [1]}')
    assert len(call.id) == len(new_id()) == 9
    assert ToolCall.of("x", {}) is not None
    for name, arguments in (
        ("", {}),
        (None, {}),
        ("x", []),
        ("x", None),
        ("x", {"a": float("nan")}),
        ("x", {"a": object()}),
        ("x", {"a": "\ud800"}),
        ("\ud800", {}),
    ):
        assert ToolCall.of(name, arguments) is None
    assert json.loads(call.arguments) == {"a": "é", "b": [1]}


def test_a_shader_that_does_not_compile_shows_its_lines() -> None:
    messages = [ShaderMessage(line, 3, f"m{line}") for line in (0, 1, 2, 3)]
    told = str(ShaderError("s", "first\n  second", messages)).splitlines()
    assert told == [
        "shader 's' does not compile:",
        "  line 0, column 3: m0",
        "  line 1, column 3: m1",
        "    first",
        "  line 2, column 3: m2",
        "    second",
        "  line 3, column 3: m3",
    ]


def test_a_prompt_that_is_too_long_says_by_how_much() -> None:
    assert "12" in str(ContextLengthError(12, 10))
    assert "10" in str(ContextLengthError(12, 10))


def test_nothing_at_all_together() -> None:
    assert wait(together()) == []
