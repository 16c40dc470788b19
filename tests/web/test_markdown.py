"""Markdown of a model becomes harmless elements: whole, and at every stage of its streaming."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.web.hostile_markdown import VECTORS
from tests.web.user import IDLE_WORKER, STANDS_STILL, TICKS_WHEN_LOOKED_AT, clock

pytestmark = pytest.mark.browser

ALLOWED: dict[str, set[str]] = {
    **{tag: set() for tag in ("br", "strong", "em", "del", "li", "thead", "tbody", "tr")},
    **{tag: {"dir"} for tag in ("p", "hr", "blockquote", "ul", "h3", "h4", "h5", "h6", "table")},
    "th": {"align"},
    "td": {"align"},
    "ol": {"start", "dir"},
    "a": {"href", "target", "rel"},
    "pre": {"data-language", "dir"},
    "code": {"dir", "tabindex"},
    "span": {"data-task", "data-math", "data-drawn", "tabindex", "class", "style", "aria-hidden"},
    "div": {"class", "tabindex", "role", "aria-label", "dir"},  # around a table
    "button": {"type", "data-act", "title"},  # the page's own, to copy and run code
}
# Above code; styles show "Run" where the code is Python.
BUTTONS = (
    '<span><button type="button" data-act="runCode" '
    'title="Run it in this page, apart from your chats and the network">Run ▸</button>'
    '<button type="button" data-act="preview" '
    'title="Show it below, apart from your chats and the network">Preview</button>'
    '<button type="button" data-act="copyCode">Copy</button></span>'
)
RENDER = """async ({text, step}) => {
    const {markdownIn} = await import("/ui/markdown.js");
    const box = document.createElement("div");
    document.querySelector("#messages").append(box);
    const view = markdownIn(box);
    const stages = [];
    for (let end = step; step && end < text.length; end += step) {
        view.grow(text.slice(0, end));
        stages.push(elementsOf(box));
    }
    view.finish(text);
    for (const element of box.querySelectorAll("*")) {
        if (element.localName === "a") continue;  // a click would go there
        for (const type of ["click", "pointerenter", "mouseover", "focus"]) {
            element.dispatchEvent(new Event(type, {bubbles: true}));
        }
    }
    await new Promise(resolve => setTimeout(resolve));
    stages.push(elementsOf(box));
    box.remove();
    return {elements: stages.flat(), html: box.innerHTML, text: box.textContent};

    function elementsOf(root) {
        return [...root.querySelectorAll("*")].map(element => [
            element.localName,
            Object.fromEntries([...element.attributes].map(({name, value}) => [name, value])),
        ]);
    }
}"""

TASKS = (
    '<ul>\n<li><span data-task="">☑</span> done</li>\n'
    '<li><span data-task="">☐</span> open</li>\n</ul>'
)


@pytest.fixture(scope="module")
def page(browser: Browser, toy_site_url: str) -> Iterator[Page]:
    """Open the page with a worker that never starts, and a clock that ends nothing."""
    page = browser.new_page()
    page.add_init_script(
        "globalThis.hits = 0; globalThis.alert = globalThis.hit = () => { hits++; }"
    )
    page.add_init_script(IDLE_WORKER)
    page.goto(toy_site_url)
    page.evaluate("import('/ui/markdown.js').then(({loadMarkdown}) => loadMarkdown())")
    rendered(page, "$x$")
    page.evaluate("import('/ui/markdown/rendering.js').then(() => {})")
    with clock(page, STANDS_STILL):
        yield page
    page.close()


def rendered(page: Page, text: str, step: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate(RENDER, {"text": text, "step": step})
    # Each block has it: test_reading.py.
    return {**result, "html": result["html"].replace(' dir="auto"', "")}


def test_the_corpus_is_large() -> None:
    assert len(set(VECTORS)) == len(VECTORS) >= 100


def test_hostile_markdown_is_harmless_at_every_stage(page: Page, toy_site_url: str) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("() => { hits = 0; }")
    together = "\n\n".join(VECTORS)
    for text in [*VECTORS, together]:
        step = 3 if text != together else 997
        for name, attributes in rendered(page, text, step)["elements"]:
            assert name in ALLOWED, f"<{name}> came from {text!r}"
            assert set(attributes) <= ALLOWED[name], f"{attributes} came from {text!r}"
            if name == "a":
                assert attributes["href"].startswith(("http://", "https://")), text
                assert attributes["rel"] == "noopener noreferrer"
                assert attributes["target"] == "_blank"
        assert page.evaluate("hits") == 0, f"script ran: {text!r}"
    assert [url for url in requests if not url.startswith(toy_site_url)] == []
    assert page.url == toy_site_url


def test_html_is_shown_as_it_was_written(page: Page) -> None:
    html = "<b onclick='x'>bold</b> <!-- hidden --> <script>x</script>"
    assert rendered(page, html)["text"].strip() == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "**a** *b* ~~c~~ `d`",
            '<p><strong>a</strong> <em>b</em> <del>c</del> <code dir="ltr">d</code></p>',
        ),
        ("# Title", "<h3>Title</h3>"),
        ("3. x", '<ol start="3">\n<li>x</li>\n</ol>'),
        ("- [x] done\n- [ ] open", TASKS),
        ("a  \nb", "<p>a<br>b</p>"),
        (
            "[x](https://example.org/a?b=1&c=2)",
            '<p><a href="https://example.org/a?b=1&amp;c=2" target="_blank" '
            'rel="noopener noreferrer">x</a></p>',
        ),
        ("[x](javascript:1)", "<p>x</p>"),
        (
            "![a cat](https://example.org/cat.png)",
            '<p><a href="https://example.org/cat.png" target="_blank" '
            'rel="noopener noreferrer">[image: a cat]</a></p>',
        ),
        (
            "```other\n1 < 2\n```",
            f'<pre data-language="other">{BUTTONS}'
            '<code dir="ltr" tabindex="0">1 &lt; 2</code></pre>',
        ),
        (
            "|a|b|\n|-|-:|\n|1|2|",
            '<div class="scrolls" tabindex="0" role="region" aria-label="Table">'
            '<table>\n<thead>\n<tr>\n<th>a</th>\n<th align="right">b</th>\n</tr>\n</thead>\n'
            '<tbody><tr>\n<td>1</td>\n<td align="right">2</td>\n</tr>\n</tbody></table></div>',
        ),
    ],
)
def test_what_markdown_becomes(page: Page, text: str, html: str) -> None:
    assert rendered(page, text)["html"].strip() == html


def test_growing_text_shows_what_the_whole_text_shows(page: Page) -> None:
    blocks = ("# A", "text", "- one\n- two", "```py\ncode\n\nmore\n```", "> quote", "|a|\n|-|\n|1|")
    text = "\n\n".join([*blocks, "end **bold**"])
    grown = page.evaluate(
        """async text => {
            const {markdownIn} = await import("/ui/markdown.js");
            const [growing, whole] = [document.createElement("div"), document.createElement("div")];
            const view = markdownIn(growing);
            const kept = [];
            for (let end = 1; end <= text.length; end++) {
                view.grow(text.slice(0, end));
                kept.push(growing.firstElementChild);
            }
            markdownIn(whole).finish(text);
            return [growing.innerHTML, whole.innerHTML, kept.at(-1) === kept.at(-40)];
        }""",
        text,
    )
    assert grown[0].replace("\n", "") == grown[1].replace("\n", "")
    assert grown[2], "a block that has ended is rendered once"


def table(columns: int, rows: int) -> str:
    return "\n".join(["|a" * columns, "|-" * columns, *["|"] * rows])


BEYOND = {
    "quotes": ">" * 1500,
    "spaced quotes": "> " * 400,
    "lists": "- " * 1500,
    "numbered lists": "1. " * 800,
    "indented lists": "\n".join(" " * (2 * depth) + "- a" for depth in range(200)),
    "emphasis": "a*_" * 10_000,
    "headings": "a\n=\n\n" * 20_000,
    "rules": "---\n\n" * 20_000,
    "lines": "a\n=\n" * 25_000,
    "table": table(2000, 2000),
    "length": "word " * 30_000,
}
ONLY_BY_THEIR_TIME = {"emphasis", "headings", "rules"}


@pytest.mark.parametrize("text", BEYOND.values(), ids=BEYOND)
def test_what_markdown_cannot_take_is_shown_as_it_was_written(page: Page, text: str) -> None:
    with clock(page, TICKS_WHEN_LOOKED_AT):
        shown = rendered(page, text, step=len(text) // 3)
    assert shown["text"] == text
    assert [name for name, _ in shown["elements"][-1:]] == ["p"]
    assert rendered(page, "**and** then")["html"].startswith("<p><strong>and</strong>")


@pytest.mark.parametrize("name", sorted(BEYOND.keys() - ONLY_BY_THEIR_TIME))
def test_what_is_too_deep_or_large_is_not_even_tried(page: Page, name: str) -> None:
    text = table(300, 300) if name == "table" else BEYOND[name]
    shown = rendered(page, text)
    assert shown["html"].startswith('<p class="plain">')
    assert shown["text"] == text


def test_bounds_leave_usual_answers_alone(page: Page) -> None:
    nested = "\n".join(" " * (2 * depth) + f"- {depth}" for depth in range(8))
    text = "\n\n".join([nested, ">>> quoted", "-" * 80, table(6, 40), "*a* `b` [c](d) " * 60])
    names = {name for name, _ in rendered(page, text, step=400)["elements"]}
    assert {"ul", "blockquote", "hr", "table", "em", "code"} <= names


def test_many_answers_beyond_the_bounds_do_not_add_up(page: Page) -> None:
    """Each may take its time, all together not many times that: later ones are not even tried."""
    with clock(page, TICKS_WHEN_LOOKED_AT):
        last = page.evaluate(
            """async text => {
                const {markdownIn} = await import("/ui/markdown.js");
                const boxes = Array.from({length: 40}, () => document.createElement("div"));
                for (const box of boxes) markdownIn(box).finish(text);
                const last = document.createElement("div");
                markdownIn(last).finish("*a*");
                return last.firstChild.className + last.textContent;
            }""",
            BEYOND["emphasis"],
        )
    assert last == "plain*a*"
    assert rendered(page, "*a*")["html"].strip() == "<p><em>a</em></p>"
