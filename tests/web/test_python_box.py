"""The Python box: what is printed as it happens, Stop, the keyboard, faults, long values."""

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import User

pytestmark = pytest.mark.browser

# Without an end, and without a moment for anybody else.
PRINTS_FOR_EVER = """n = 0
while True:
    n += 1
    if n < 4:
        print("round", n)
"""


@pytest.fixture(scope="module")
def box(fresh: User) -> Locator:
    """Open, with nothing loaded; Stop soon breaks off what does not answer."""
    fresh.be_patient(cancel=100)
    fresh.page.get_by_role("button", name="Python").click()
    box = fresh.page.get_by_role("dialog", name="Python")
    expect(box).to_be_visible()
    return box


@pytest.fixture
def code(box: Locator) -> Locator:
    return box.get_by_label("Code")


@pytest.fixture
def output(box: Locator) -> Locator:
    return box.get_by_role("log")


def run(box: Locator, text: str) -> None:
    box.get_by_label("Code").fill(text)
    box.get_by_role("button", name="Run").click()


def ended(box: Locator) -> None:
    expect(box.get_by_role("button", name="Run")).to_be_visible()


def test_an_example_that_needs_a_model_says_so(box: Locator, code: Locator) -> None:
    box.get_by_label("Example").select_option(index=1)
    expect(box.get_by_role("status")).to_have_text("This example needs a model: load one first.")
    box.get_by_label("Example").select_option(index=0)
    expect(box.get_by_role("status")).to_have_text("")


def test_a_loop_shows_what_it_prints_and_is_stopped(
    fresh: User, box: Locator, output: Locator
) -> None:
    run(box, PRINTS_FOR_EVER)
    expect(output).to_have_text("round 1\nround 2\nround 3")  # it runs still
    assert fresh.faults_of_access() == []
    box.get_by_role("button", name="Stop").click()
    expect(box.get_by_role("status")).to_have_text("Stopped.")
    ended(box)
    run(box, "import asyncio\nprint('waits')\nawait asyncio.sleep(10**6)")
    expect(output).to_have_text("waits")
    fresh.page.keyboard.press("Escape")
    expect(box.get_by_role("status")).to_have_text("Stopped.")
    expect(box).to_be_visible()
    run(box, "n > 3")
    expect(output).to_have_text("True")


def test_prints_and_the_value(box: Locator, output: Locator) -> None:
    run(box, "print('one', end=' ')\nprint('two')\nimport sys\nprint('three', file=sys.stderr)\n4")
    expect(output).to_have_text("one two\nthree\n4")
    run(box, "kept = 1")
    expect(box.get_by_role("status")).to_have_text("Done. No output.")
    run(box, "for i in range(100_000): print(i)")
    expect(output).to_contain_text("99999")
    assert len(output.inner_text()) < 250_000


def test_a_traceback_begins_at_the_users_line(box: Locator, output: Locator) -> None:
    run(box, "print('before')\ndef f():\n    return 1 / 0\nf()")
    expect(output).to_contain_text("ZeroDivisionError")
    lines = output.inner_text().splitlines()
    assert lines[:3] == [
        "before",
        "Traceback (most recent call last):",
        '  File "<inpage.python>", line 4, in <module>',
    ]
    run(box, "1 +")
    expect(output).to_contain_text("SyntaxError")
    assert "pyodide" not in output.inner_text()


def test_long_values_are_summarised(box: Locator, output: Locator) -> None:
    run(box, "np.zeros((300, 300))")
    expect(output).to_contain_text("array of float64, 300 × 300")
    assert len(output.inner_text()) < 1000
    run(box, "list(range(10**6))")
    expect(output).to_contain_text("… 999,940 more")
    assert len(output.inner_text()) < 2000


def test_the_arrow_keys_bring_back_what_was_run(
    fresh: User, box: Locator, code: Locator, output: Locator
) -> None:
    press = fresh.page.keyboard.press
    for text in ("'first'", "if True:\n    'second'\n'second'"):
        code.fill(text)
        code.press("Control+Enter")
        ended(box)
        expect(output).to_have_text("first" if "first" in text else "second")
    code.fill("being written")
    press("ArrowUp")
    expect(code).to_have_value("if True:\n    'second'\n'second'")
    press("ArrowUp")
    expect(code).to_have_value("'first'")
    press("ArrowDown")
    press("ArrowDown")  # within it
    press("ArrowDown")
    press("ArrowDown")
    expect(code).to_have_value("being written")


def test_tab_indents_and_escape_lets_it_leave(fresh: User, box: Locator, code: Locator) -> None:
    press = fresh.page.keyboard.press
    code.fill("")
    press("Tab")
    fresh.page.keyboard.type("x = 1")
    expect(code).to_have_value("    x = 1")
    code.fill("a\nb")
    press("ControlOrMeta+a")
    press("Tab")
    expect(code).to_have_value("    a\n    b")
    press("Shift+Tab")
    expect(code).to_have_value("a\nb")
    press("Escape")
    press("Tab")
    expect(box.get_by_role("button", name="Run")).to_be_focused()
    press("Shift+Tab")
    expect(code).to_be_focused()
    press("Escape")
    press("Escape")
    expect(box).to_be_hidden()
    assert fresh.complaints == []
