"""Facts and tables as notebooks show them: nothing that strangers wrote acts in them."""

from py_runtime.base.html import MAX_ROWS, as_html

EVIL = "<img src=x onerror=alert(1)>"


def test_everything_is_escaped() -> None:
    html = as_html(EVIL, [EVIL, ""], [EVIL], [EVIL])
    assert "<img" not in html
    assert html.count("&lt;img") == 4


def test_a_long_table_is_cut() -> None:
    html = as_html("x", [], ["a"], *([row] for row in range(MAX_ROWS + 3)))
    assert html.count("<td>") == MAX_ROWS
    assert "and 3 more" in html
