"""The HTML that notebooks show for our objects: a line of facts and a table, all escaped."""

from collections.abc import Sequence
from html import escape

MAX_ROWS = 60


def as_html(title: str, facts: Sequence[object], *table: Sequence[object]) -> str:
    """Render a title, facts and a table; `table` is its head, then its rows."""
    line = " · ".join(escape(str(fact)) for fact in facts if fact)
    text = f"<div><strong>{escape(title)}</strong> {line}</div>"
    if len(table) < 2:
        return text
    head, *rows = table
    lines = [_row("th", head), *(_row("td", row) for row in rows[:MAX_ROWS])]
    more = f"<div>and {len(rows) - MAX_ROWS} more</div>" if len(rows) > MAX_ROWS else ""
    return f"{text}<table>{''.join(lines)}</table>{more}"


def _row(tag: str, cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
