"""Answers with maths, code, tables, reasoning, in scripts of all directions: read as meant."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.user import IDLE_WORKER, User

pytestmark = pytest.mark.browser

SHOW = """async ({text, step}) => {
    const {markdownIn} = await import("/ui/markdown.js");
    document.querySelector("#tried")?.remove();
    const article = document.createElement("article");
    const box = document.createElement("div");
    Object.assign(article, {id: "tried", className: "message"});
    box.className = "text";
    article.append(box);
    document.querySelector("#messages").append(article);
    const view = markdownIn(box);
    for (let end = step; step && end < text.length; end += step) {
        view.grow(text.slice(0, end));
        await new Promise(requestAnimationFrame);
    }
    view.finish(text);
}"""


class UserWithText(User):
    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.shown = page.locator("#tried > .text")

    def show(self, text: str, step: int = 0) -> Locator:
        self.page.evaluate(SHOW, {"text": text, "step": step})
        return self.shown

    def maths(self) -> list[list[str]]:
        """Kind and TeX of each formula that was drawn."""
        found: list[list[str]] = self.shown.locator("[data-drawn]").evaluate_all(
            "all => all.map(each => [each.dataset.math,"
            " each.querySelector('annotation').textContent.trim()])"
        )
        return found


@pytest.fixture(scope="module")
def user(browser: Browser, toy_site_url: str) -> Iterator[UserWithText]:
    """Open the page with a worker that never starts: rendering needs none."""
    context = browser.new_context()
    user = UserWithText(context.new_page(), toy_site_url)
    user.page.add_init_script("""
        globalThis.refused = [];
        addEventListener("securitypolicyviolation", event => refused.push(event.violatedDirective));
    """)
    user.page.add_init_script(IDLE_WORKER)
    user.page.goto(toy_site_url)
    user.has_opened()
    yield user
    assert user.page.evaluate("refused") == []
    assert user.complaints == []
    assert [url for url in user.requests if not url.startswith(toy_site_url)] == []
    context.close()


def test_nothing_is_fetched_for_plain_answers(user: UserWithText) -> None:
    """Runs first: what is fetched stays."""
    expect(
        user.show("Plain, *even* so. It costs 5 € [there](https://example.org/).")
    ).to_contain_text("even")
    assert not [url for url in user.requests if "katex" in url or "highlight" in url]
    assert not [url for url in user.requests if url.endswith("ui/markdown/rendering.js")]


@pytest.mark.parametrize(
    ("library", "text", "result"),
    [("katex", "$x$", "[data-drawn]"), ("highlight", "```js\nlet x;\n```", "code span")],
)
def test_what_did_not_arrive_is_fetched_again(
    user: UserWithText, library: str, text: str, result: str
) -> None:
    """The tests that need it come later: what is fetched stays."""
    url = f"**/{library}.js"
    user.page.route(url, lambda route: route.abort())
    with user.page.expect_event("requestfailed", lambda request: library in request.url):
        user.show(text)
    user.page.unroute(url)
    expect(user.shown.locator(result)).to_have_count(0)
    user.show(text)
    expect(user.shown.locator(result)).not_to_have_count(0)


# ---- maths


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("so $a_1 * b_1 + c*d$ is", [["inline", "a_1 * b_1 + c*d"]]),
        (r"so \(x^2\) is", [["inline", "x^2"]]),
        ("so\n\n$$\nx\n= y\n$$\n\nis", [["display", "x\n= y"]]),
        ("so $$x$$ is", [["display", "x"]]),
        ("so\n\\[\n\\frac{a}{b}\n- c\n\\]\nis", [["display", "\\frac{a}{b}\n- c"]]),
        ("- item $x$\n- item", [["inline", "x"]]),
        ("**bold $x$**, $y$", [["inline", "x"], ["inline", "y"]]),
        ("|a|\n|-|\n|$x$|", [["inline", "x"]]),
    ],
)
@pytest.mark.parametrize("step", [0, 2])
def test_maths_is_drawn(
    user: UserWithText, text: str, formulas: list[list[str]], step: int
) -> None:
    user.show(text, step)
    expect(user.shown.locator("[data-drawn]")).to_have_count(len(formulas))
    assert user.maths() == formulas
    assert "$" not in user.shown.inner_text()


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "From $5-$10, or US$ 7 and 8$ there",
        "`$x$` is code",
        "```\n$$x$$\n```",
        r"an escaped \$x\$ dollar",
        "$ not maths $",
    ],
)
def test_what_is_no_maths_stays(user: UserWithText, text: str) -> None:
    expect(user.show(text)).to_contain_text("$")
    assert user.shown.locator("[data-math]").count() == 0


DEEP = "x"
for _ in range(40):
    DEEP = rf"\hat{{{DEEP}}}^2"
NOT_DRAWN = {
    "not TeX": r"$\frac{1}$",
    "unknown": r"$\nosuchthing$",
    "a link": r"$\href{javascript:hit()}{x}$",
    "an image": r"$\includegraphics{https://example.org/x.png}$",
    "HTML": r"$\htmlStyle{position: fixed}{x}$",
    "macros": r"$\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a}\b\b\b\b\b\b$",
    "too deep": f"${DEEP}$",
    "too long": f"${'x + ' * 2000} x$",
    "braces": f"${'{' * 1500}x{'}' * 1500}$",
}


@pytest.mark.parametrize("text", NOT_DRAWN.values(), ids=NOT_DRAWN)
def test_what_cannot_be_drawn_is_shown_as_it_was_written(user: UserWithText, text: str) -> None:
    """The next one is, so this had its turn."""
    shown = user.show(f"{text}\n\n$x$")
    expect(shown.locator("[data-drawn]")).to_have_count(1)
    assert shown.locator("[data-math]").first.inner_text() == text
    assert shown.locator("a, img, [href], [src]").count() == 0


def test_maths_cannot_leave_its_answer(user: UserWithText) -> None:
    user.show(r"$\rule{9999em}{9999em}\kern{-999em}\raisebox{999em}{over all}$")
    expect(user.shown.locator("[data-drawn]")).to_have_count(1)
    fixed = "all => all.filter(each => /fixed|sticky/.test(getComputedStyle(each).position)).length"
    assert user.shown.locator("*").evaluate_all(fixed) == 0
    assert user.shown.evaluate("box => getComputedStyle(box).overflow") == "clip"
    assert not user.page.evaluate("() => document.scrollingElement.scrollWidth > innerWidth")


def test_the_styles_of_maths_hold_although_the_policy_takes_no_attributes(
    user: UserWithText,
) -> None:
    user.show(r"$\vec{v} = \sqrt{x} \; {\color{#ff0000} y}$")
    expect(user.shown.locator("[data-drawn]")).to_have_count(1)
    red = "all => all.some(each => getComputedStyle(each).color === 'rgb(255, 0, 0)')"
    assert user.shown.locator(".katex-html *").evaluate_all(red)
    assert user.shown.locator(".vlist > span").first.evaluate("each => each.style.top")
    fonts = "() => document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Main'))"
    assert user.page.evaluate(fonts)


# ---- code


def test_code_has_colours_and_keeps_its_text(user: UserWithText) -> None:
    code = 'def f(x):\n    return "<b>" + x  # why'
    shown = user.show(f"```python\n{code}\n```", step=7)
    expect(shown.locator(".hljs-keyword")).to_have_text(["def", "return"])
    assert shown.locator("code").inner_text() == code
    assert shown.locator("b").count() == 0


@pytest.mark.parametrize("language", ["mermaid", "nosuch", "constructor", "__proto__"])
def test_code_of_other_languages_is_text_with_a_copy(user: UserWithText, language: str) -> None:
    code = "graph TD\n  A --> B"
    shown = user.show(f"```{language}\n{code}\n```\n\n```js\n1\n```")
    expect(shown.locator(".hljs-number")).to_have_count(1)
    first = shown.locator("pre").first
    assert first.locator("code").inner_html() == code.replace(">", "&gt;")
    expect(first.get_by_role("button", name="Copy")).to_be_visible()


# ---- tables and tasks


def test_wide_tables_scroll_by_themselves(user: UserWithText) -> None:
    header = "|".join(f"column{at}" for at in range(30))
    shown = user.show(f"{header}\n{'|'.join(['-'] * 30)}\n{header}")
    box = shown.get_by_role("region", name="Table")
    expect(box).to_have_attribute("tabindex", "0")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert not user.page.evaluate("() => document.scrollingElement.scrollWidth > innerWidth")


def test_task_lists_have_boxes_instead_of_bullets(user: UserWithText) -> None:
    shown = user.show("- [x] done\n- [ ] open\n- plain")
    style = "all => all.map(each => getComputedStyle(each).listStyleType)"
    assert shown.locator("li").evaluate_all(style) == ["none", "none", "disc"]
    assert shown.locator("[data-task]").all_inner_texts() == ["☑", "☐"]


# ---- reasoning

MARKED = {
    "think": "<think>\nFirst *this*.\n</think>\n\nThe answer",
    "only the end": "First *this*.\n</think>\n\nThe answer",
    "thinking": "<thinking>First *this*.</thinking>The answer",
    "Mistral": "[THINK]First *this*.[/THINK]The answer",
    "Gemma": "<|channel>thought\nFirst *this*.<channel|>The answer",
    "gpt-oss": "<|channel|>analysis<|message|>First *this*.<|end|><|start|>assistant"
    "<|channel|>final<|message|>The answer",
}


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
@pytest.mark.parametrize("step", [0, 3])
def test_reasoning_is_folded_above_the_answer(user: UserWithText, text: str, step: int) -> None:
    shown = user.show(text, step)
    thoughts = shown.locator("details.reasoning")
    expect(thoughts).to_have_count(1)
    expect(thoughts).not_to_have_attribute("open", "")
    assert shown.inner_text().rstrip().endswith("The answer")
    assert "First" not in shown.inner_text()
    thoughts.locator("summary").click()
    assert thoughts.locator(".text").inner_text().strip() == "First this."
    expect(thoughts.locator("em")).to_have_text("this")


def test_thinking_is_told_while_it_goes_on_and_timed(user: UserWithText) -> None:
    user.show("")
    user.page.evaluate("""async () => {
        const {markdownIn} = await import("/ui/markdown.js");
        performance.now = () => 1000;
        globalThis.view = markdownIn(document.querySelector("#tried .text"));
        view.grow("<think>Well");
    }""")
    summary = user.shown.locator("summary")
    expect(summary).to_have_text("Thinking…")
    summary.click()
    user.page.evaluate("""() => {
        performance.now = () => 84_000;
        view.grow("<think>Well, well</think>So");
        delete performance.now;
    }""")
    expect(summary).to_have_text("Thought for 1 min 23 s")
    assert user.shown.locator("details").evaluate("details => details.open"), (
        "stays as the user left it"
    )
    user.page.evaluate("view.finish('<think>Well, well</think>So it is')")
    expect(summary).to_have_text("Thought for 1 min 23 s")
    assert user.shown.get_attribute("data-thought") == "83"


@pytest.mark.parametrize(
    "text",
    [
        "<think>\n\n</think>\n\nOnly an answer",
        "Use a <think> tag, and end it with </think> later. Only an answer",
        "```\n</think>\n```\nOnly an answer",
    ],
)
def test_what_is_no_reasoning_is_not_folded(user: UserWithText, text: str) -> None:
    expect(user.show(text)).to_contain_text("Only an answer")
    expect(user.shown.locator("summary:visible")).to_have_count(0)


# ---- directions


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("مرحبا بالعالم، this is mixed", "rtl"),
        ("- שלום\n- עולם", "rtl"),
        ("> اقتباس", "rtl"),
        ("|عمود|آخر|\n|-|-|\n|1|2|", "rtl"),
        ("Hello مرحبا", "ltr"),
        ("# 你好 🙂", "ltr"),
        ("`npm` هو مدير حزم", "rtl"),
        ("Python هي لغة برمجة سهلة التعلم", "rtl"),
        ("- Docker היא מערכת להפעלת תוכנה\n- שלום", "rtl"),
        ("The word שלום means peace", "ltr"),
        ("`كود` first", "ltr"),
    ],
)
def test_each_block_reads_in_its_direction(user: UserWithText, text: str, direction: str) -> None:
    shown = user.show(text)
    expect(shown.locator("> *")).to_have_attribute("dir", re.compile("auto|rtl"))
    assert shown.locator("li").evaluate_all(
        """(items, direction) => items.every(
        item => getComputedStyle(item).direction === direction
    )""",
        direction,
    )
    assert shown.locator("> *").evaluate("block => getComputedStyle(block).direction") == direction


def test_code_reads_from_the_left_among_arabic(user: UserWithText) -> None:
    shown = user.show("مرحبا\n\n```\nكود = 1\n```\n\nو $x + y$ هنا")
    expect(shown.locator("[data-drawn]")).to_have_count(1)
    for part in ("pre code", "[data-math]"):
        assert shown.locator(part).evaluate("one => getComputedStyle(one).direction") == "ltr"


def test_what_is_typed_reads_in_its_direction(user: UserWithText) -> None:
    user.composer.fill("שלום")
    assert user.composer.evaluate("one => getComputedStyle(one).direction") == "rtl"
    user.composer.fill("")


# ---- the bounds

BIG: dict[str, Any] = {
    "formulas": "$x_1^2$ " * 3000,
    "code": "```python\n" + "def f(): pass\n" * 6000 + "```",
    "blocks": "```js\nlet a = 1;\n```\n\n" * 1500,
}


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_the_page_answers_while_much_is_drawn(user: UserWithText, text: str) -> None:
    user.show(text)
    user.composer.fill("still there")
    expect(user.composer).to_have_value("still there")
    user.composer.fill("")
    user.show("and $y$ then")
    expect(user.shown.locator("[data-drawn]")).to_have_count(1)


def test_rich_answers_are_open_to_everyone(user: UserWithText) -> None:
    text = "\n\n".join(
        ["<think>Hm</think>", "$$x$$", "```py\nx = 1\n```", "|a|\n|-|\n|1|", "- [x] y"]
    )
    for scheme in ("light", "dark"):
        user.page.emulate_media(color_scheme=scheme)
        user.show(text)
        expect(user.shown.locator("[data-drawn]")).to_have_count(1)
        expect(user.shown.locator(".hljs-number")).to_have_count(1)
        assert user.faults_of_access() == []
    user.page.emulate_media(color_scheme=None)
