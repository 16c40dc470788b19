"""Texts that take their readers long: the page answers meanwhile, and opens on the next visit."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.user import Desk, chat_of

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

DOLLARS = "$" * 19_000 + "!"  # much work for highlight.js's pattern of a name in Java
# Counts workers that were ended, and what timers of the page saw of the list of messages.
WATCH = """
    globalThis.ended = 0;
    const Before = Worker;
    globalThis.Worker = function (url, options) {
        const worker = new Before(url, options);
        const end = worker.terminate.bind(worker);
        return Object.assign(worker, {terminate() { ended++; end(); }});
    };
"""
WATCH_MESSAGES = """() => {
    globalThis.counts = new Set();
    setInterval(() => counts.add(document.querySelector("#messages").children.length));
}"""
RENDER_MANY = """async text => {
    const {patience, renderInWorker} = await import("/ui/markdown/rendering.js");
    Object.assign(patience, {text: 300, all: 500});
    const jobs = Array.from({length: 8}, () => renderInWorker("code", {text, language: "java"}));
    return (await Promise.allSettled(jobs)).map(({status}) => status);
}"""
# How long the texts are that marked reads in the page itself.
WATCH_READING = """async () => {
    const {library} = await import("/ui/lazy.js");
    const {Marked} = await library("marked.js")();
    const {lexer} = Marked.prototype;
    globalThis.lengths = [];
    Marked.prototype.lexer = function (text, ...others) {
        lengths.push(text.length);
        return lexer.call(this, text, ...others);
    };
}"""
# Without those of its workers.
FETCHED_BY_THE_PAGE = """performance.getEntriesByType("resource")
    .map(({name}) => name.split("/").at(-1))"""
MAX_AT_ONCE = 4000  # characters
HOSTILE = {
    "dashes": "-" * 40_000 + "x",
    "prices": "rich $x$ is $1" + " ," * 20_000,
    "links": "[`" + "`a" * 20_000 + "\n\n[a]: b",
    "quotes": "> " + "v>" * 30_000 + "\n ",
    "deep": "> " * 20_000,
    "one address": "[a]: https://a.example/" + "a" * 50_000 + "\n\n" + "[a]" * 15_000,
    "thoughts": "<think>" + " \t" * 30_000 + "</think",
    "formulas": r"$\hat{x^{" * 5 + "y" * 3000 + "}}$" * 5,
}


def show(page: Page, *texts: str) -> None:
    page.evaluate(
        """async texts => {
            const {markdownIn} = await import("/ui/markdown.js");
            for (const text of texts) {
                const box = document.createElement("div");
                box.className = "tried text";
                document.querySelector("#messages").append(box);
                markdownIn(box).finish(text);
            }
        }""",
        list(texts),
    )


def java(text: str) -> str:
    return f"```java\n{text}\n```"


def test_code_that_takes_too_long_stays_plain_and_the_next_block_has_colours(desk: Desk) -> None:
    user = desk.tab(script=WATCH)
    user.page.evaluate("() => { globalThis.ticks = 0; setInterval(() => { ticks++; }); }")
    show(user.page, java(DOLLARS))
    user.page.wait_for_function("() => ended === 1")
    show(user.page, java("int x = 1;"))
    expect(user.page.locator(".tried .hljs-number")).to_have_count(1)
    assert user.page.evaluate("ticks") > 1, "the page went on meanwhile"
    slow = user.page.locator(".tried code").first
    assert slow.inner_html() == DOLLARS
    assert user.complaints == []


def test_the_page_itself_reads_short_texts_alone(desk: Desk) -> None:
    """Check that the worker does what can take long: long texts, colours of code, maths."""
    user = desk.tab()
    user.page.evaluate(WATCH_READING)
    show(user.page, java("int x = 1;"), "*word* " * (MAX_AT_ONCE // 7), "a formula: $x^2$")
    expect(user.page.locator(".tried .hljs-number")).to_have_count(1)
    expect(user.page.locator(".tried [data-drawn]")).to_have_count(1)
    show(user.page, "*word* " * (MAX_AT_ONCE // 7 + 1), *HOSTILE.values())
    expect(user.page.locator(".tried em")).to_have_count(2 * (MAX_AT_ONCE // 7) + 1)
    lengths = user.page.evaluate("lengths")
    assert MAX_AT_ONCE - 7 < max(lengths) <= MAX_AT_ONCE
    fetched = user.page.evaluate(FETCHED_BY_THE_PAGE)
    assert "marked.js" in fetched
    assert {"highlight.js", "katex.js"}.isdisjoint(fetched)
    assert user.complaints == []


def test_many_such_blocks_use_up_their_time_together(desk: Desk) -> None:
    user = desk.tab(script=WATCH)
    outcomes = user.page.evaluate(RENDER_MANY, DOLLARS)
    assert outcomes == ["rejected"] * 8
    assert 1 <= user.page.evaluate("ended") <= 2, "each is charged with the time that it took"


def test_a_page_with_hostile_chats_opens_again(desk: Desk) -> None:
    user = desk.tab()
    texts = [text for answer in HOSTILE.values() for text in ("Write", answer)]
    user.import_chats(chat_of(*texts))
    for visit in range(2):
        expect(user.answers).to_have_count(len(HOSTILE) + visit)
        for answer in user.answers.all():
            expect(answer.locator(".text").first).not_to_be_empty()
        assert user.ask("Still there?").locator(".text").inner_text().startswith("An answer")
        user.page.reload()
        desk.ready(user)
    assert user.complaints == []


def test_a_chat_of_many_messages_is_shown_in_slices(desk: Desk) -> None:
    user, many = desk.tab(), 1500
    user.page.evaluate(WATCH_MESSAGES)
    user.import_chats(chat_of(*(f"*message* {at}" for at in range(many))))
    expect(user.page.locator("#messages > article")).to_have_count(many)
    counts: list[Any] = user.page.evaluate("[...counts]")
    assert len([count for count in counts if 0 < count < many]) > 2, "timers run between slices"
    shown = user.page.locator("#messages > article .text")
    texts = shown.evaluate_all("all => all.map(each => each.textContent.trim())")
    assert texts == [f"*message* {at}" if at % 2 == 0 else f"message {at}" for at in range(many)]
    expect(shown.last).to_be_in_viewport()
    user.page.evaluate("document.querySelector('#messages article').id = 'first'")
    user.ask("And now?")
    expect(user.page.locator("#messages > article")).to_have_count(many + 2)
    expect(user.page.locator("#first .text")).to_have_text("*message* 0")
    assert user.complaints == []
