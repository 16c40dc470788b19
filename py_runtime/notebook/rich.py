"""Values as a notebook shows them: by their own `_repr_…_`, as tables and grids, else as text."""

import base64
import sys
from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import Any

import numpy as np

from py_runtime.notebook.shown_value import shown_value

Bundle = dict[str, str]  # MIME type → text, or base64 of what is not text

HTML, PLAIN, SVG = "text/html", "text/plain", "image/svg+xml"
# What a value may say of itself, in the order of Jupyter's.
OWN = {
    "_repr_html_": HTML,
    "_repr_svg_": SVG,
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
}
MAX_BYTES = 8 << 20  # of one picture or page
EDGE = 3  # rows and columns of an array that are shown on each side
MAX_ROWS = 100


def bundle(value: Any) -> Bundle:
    """Return what there is to show of a value; nothing for None."""
    if value is None:
        return {}
    found: Bundle = {}
    for name, kind in OWN.items():
        shown = _ask(value, name)
        if shown and len(shown) <= MAX_BYTES:
            found[kind] = shown
    if not found and (drawn := _figure(value)):
        found["image/png"] = drawn
    if isinstance(value, np.ndarray) and value.size > 1:
        found[HTML] = array_html(value)
    elif not found and (table := rows_html(value)):
        found[HTML] = table
    return found | {PLAIN: shown_value(value)}


def _ask(value: Any, name: str) -> str | None:
    """Ask a value for a form of itself; one that fails at it has none."""
    if isinstance(value, type):
        return None
    method = getattr(value, name, None)
    if not callable(method):
        return None
    try:
        shown = method()
    except Exception:
        return None
    if isinstance(shown, bytes):
        return base64.b64encode(shown).decode()
    return shown if isinstance(shown, str) else None


def _figure(value: Any) -> str | None:
    """Draw a figure of matplotlib's, which can do so only if it is here already."""
    figure = sys.modules.get("matplotlib.figure")
    if figure is None or not isinstance(value, figure.Figure):
        return None
    return png_of(value)


def png_of(figure: Any) -> str:
    """Draw a figure of matplotlib's as base64 of a PNG."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=144, bbox_inches="tight")
    return base64.b64encode(data.getvalue()).decode()


def array_html(array: np.ndarray) -> str:
    """Show an array's type, shape and range, and a grid of its corners."""
    shape = " × ".join(map(str, array.shape))
    facts = [str(array.dtype), shape, *_range(array)]
    head = " · ".join(escape(fact) for fact in facts)
    plane = array.reshape(-1, array.shape[-1])  # array: […, columns]
    rows = [_cells(plane[at]) if at is not None else None for at in _places(len(plane))]
    width = min(plane.shape[1], 2 * EDGE + 1)
    lines = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row or ['⋮'] * width)}</tr>" for row in rows
    )
    return f"<div>{head}</div><table>{lines}</table>"


def _range(array: np.ndarray) -> list[str]:
    """Return the least, the greatest and the mean of what is a number, and how many are not."""
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number):
        return []
    if np.issubdtype(array.dtype, np.complexfloating):
        return []
    finite = array[np.isfinite(array)]
    missing = array.size - finite.size
    facts = [f"{missing:,} not finite"] if missing else []
    if finite.size:
        mean = float(finite.mean(dtype=np.float64))
        facts[:0] = [f"{_number(finite.min())} … {_number(finite.max())}", f"mean {_number(mean)}"]
    return facts


def _places(count: int) -> list[int | None]:
    """Return the first and last places of so many, with None for those between."""
    if count <= 2 * EDGE + 1:
        return list(range(count))
    return [*range(EDGE), None, *range(count - EDGE, count)]


def _cells(row: np.ndarray) -> list[str]:
    return ["…" if at is None else escape(_number(row[at])) for at in _places(len(row))]


def _number(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    return str(value)


def rows_html(value: Any) -> str | None:
    """Show a list of flat dictionaries with the same keys as a table."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        return None
    if not all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value):
        return None
    if not value[0] or any(_is_nested(cell) for row in value for cell in row.values()):
        return None
    head = _row("th", list(map(str, value[0])))
    body = "".join(_row("td", list(map(_number, row.values()))) for row in value[:MAX_ROWS])
    left = len(value) - MAX_ROWS
    more = f"<div>… {left:,} more rows</div>" if left > 0 else ""
    return f"<table>{head}{body}</table>{more}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple | set | np.ndarray)


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
