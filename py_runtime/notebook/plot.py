"""Small plots as SVG, in the page's own colours, without another library.

Each function returns a plot that a cell shows, and whose `svg` is its text. For more, import
matplotlib: this site has it.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape, unescape
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 30, 40
TICKS = 5
LETTER_WIDTH, LETTER_HEIGHT = 7, 13  # of the usual letter, about
# Okabe and Ito's colours, which people tell apart who see few colours; and viridis.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MAP = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))

Numbers = Sequence[float] | np.ndarray


class Plot:
    """A drawing that a notebook shows."""

    def __init__(
        self, parts: Sequence[str], title: str, width: float, height: float, left: float = LEFT
    ) -> None:
        self.title = title
        heading = f'<text x="{left:g}" y="18" font-weight="600">{escape(title)}</text>'
        self.svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" font-family="system-ui, sans-serif" '
            f'font-size="12" fill="currentColor"><title>{escape(title or "Plot")}</title>'
            f"{heading if title else ''}{''.join(parts)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Plot({self.title!r})"


def lines(
    series: Numbers | Mapping[str, Numbers],
    *,
    x: Numbers | None = None,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
) -> Plot:
    """Draw one line or several by their names, over 0, 1, 2 … or `x`."""
    given = series if isinstance(series, Mapping) else {"": series}
    named = {name: np.asarray(values, float) for name, values in given.items()}
    longest = max(map(len, named.values()), default=0)
    places = np.asarray(x if x is not None else range(longest), float)
    frame = _Frame.around(places, np.concatenate([*named.values(), np.zeros(0)]))
    parts = frame.axes(labels)
    for at, (name, values) in enumerate(named.items()):
        colour = SERIES[at % len(SERIES)]
        points = [
            f"{frame.x(a):.1f},{frame.y(b):.1f}"
            for a, b in zip(places, values, strict=False)
            if isfinite(b)
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
            'stroke-width="2" stroke-linejoin="round"/>'
        )
        if name:
            parts.append(_legend(at, name, colour))
    return Plot(parts, title, WIDTH, HEIGHT)


def scatter(
    x: Numbers,
    y: Numbers,
    names: Sequence[str] = (),
    *,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
) -> Plot:
    """Draw points, with names beside them where there are some."""
    across, up = np.asarray(x, float), np.asarray(y, float)
    frame = _Frame.around(across, up)
    parts = frame.axes(labels)
    for at, (a, b) in enumerate(zip(across, up, strict=True)):
        place = f'cx="{frame.x(a):.1f}" cy="{frame.y(b):.1f}"'
        name = escape(str(names[at])) if at < len(names) else ""
        parts.append(f'<circle {place} r="4" fill="{SERIES[0]}" fill-opacity="0.75"/>')
        if name:
            parts.append(f'<text x="{frame.x(a) + 6:.1f}" y="{frame.y(b) + 4:.1f}">{name}</text>')
    return Plot(parts, title, WIDTH, HEIGHT)


def bars(values: Mapping[str, float], *, title: str = "") -> Plot:
    """Draw a bar for each name, from top to bottom."""
    row, left = 22, 150
    top = TOP if title else 8
    finite = [abs(value) for value in values.values() if isfinite(value)]
    most = max(finite, default=0.0) or 1.0
    room = WIDTH - left - 70
    parts = []
    for at, (name, value) in enumerate(values.items()):
        y = top + at * row
        length = room * abs(value) / most if isfinite(value) else 0
        colour = SERIES[0] if value >= 0 else SERIES[1]
        parts.append(
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(_cut(str(name)))}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="{row - 8}" rx="2" '
            f'fill="{colour}"/><text x="{left + length + 6:.1f}" y="{y + 14}">{value:.4g}</text>'
        )
    return Plot(parts, title, WIDTH, top + len(values) * row + 8)


def heat(
    values: Any,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    labels: tuple[str, str] = ("", ""),
) -> Plot:
    """Draw a matrix as a map of colours, dark for little; names of rows and columns if given."""
    matrix = np.asarray(values, float)  # matrix: [rows, columns]
    height, width = matrix.shape
    finite = matrix[np.isfinite(matrix)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    size = min(28.0, (WIDTH - LEFT - RIGHT) / max(width, 1))
    tall = min(22.0, max(size, 8.0))
    beside = max(LEFT - 26, _longest([_place(rows, row) for row in range(height)]))
    left = beside + (26 if labels[1] else 10)  # the axis has its name beyond the rows'
    parts = []
    for row, line in enumerate(matrix):
        for column, value in enumerate(line):
            colour = _colour((value - low) / ((high - low) or 1.0)) if isfinite(value) else "none"
            parts.append(
                f'<rect x="{left + column * size:.1f}" y="{TOP + row * tall:.1f}" '
                f'width="{size + 0.3:.1f}" height="{tall + 0.3:.1f}" fill="{colour}">'
                f"<title>{_place(rows, row)}, {_place(columns, column)}: {value:.4g}</title></rect>"
            )
    bottom = TOP + height * tall
    for row in _some(height, tall, LETTER_HEIGHT):
        parts.append(
            f'<text x="{left - 6}" y="{TOP + (row + 0.5) * tall + 4:.1f}" text-anchor="end">'
            f"{_place(rows, row)}</text>"
        )
    below = 15.0
    names = [_place(columns, column) for column in range(width)]
    if _longest(names) <= max(size, 24):
        for column in _some(width, size, 24):
            x = left + (column + 0.5) * size
            parts.append(
                f'<text x="{x:.1f}" y="{bottom + below:.1f}" text-anchor="middle">'
                f"{names[column]}</text>"
            )
    else:  # they would touch side by side, and stand upright
        for column in _some(width, size, LETTER_HEIGHT):
            x = left + (column + 0.5) * size + 4
            parts.append(
                f'<text transform="translate({x:.1f} {bottom + 6:.1f}) rotate(-90)" '
                f'text-anchor="end">{names[column]}</text>'
            )
        below = _longest(names) + 6
    across = f"{labels[0]} · {low:.3g} dark, {high:.3g} bright".strip(" ·")
    parts.append(
        f'<text x="{left}" y="{bottom + below + 19:.1f}" opacity="0.75">{escape(across)}</text>'
    )
    if labels[1]:
        parts.append(_upright(labels[1], 12, TOP + height * tall / 2))
    return Plot(parts, title, max(left + width * size + RIGHT, 260), bottom + below + 29, left)


class _Frame:
    """The ranges of both axes, and where a number stands."""

    def __init__(self, across: tuple[float, float], up: tuple[float, float]) -> None:
        self._across, self._up = across, up

    @classmethod
    def around(cls, x: np.ndarray, y: np.ndarray) -> "_Frame":
        return cls(_range(x), _range(y))

    def x(self, value: float) -> float:
        low, high = self._across
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self._up
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    def axes(self, labels: tuple[str, str]) -> list[str]:
        return [
            *self._grid(self._up, lambda at: (LEFT, self.y(at), WIDTH - RIGHT, self.y(at))),
            *self._grid(self._across, lambda at: (self.x(at), TOP, self.x(at), HEIGHT - BOTTOM)),
            *(
                f'<text x="{LEFT - 6}" y="{self.y(at) + 4:.1f}" text-anchor="end">{at:g}</text>'
                for at in _ticks(*self._up)
            ),
            *(
                f'<text x="{self.x(at):.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">'
                f"{at:g}</text>"
                for at in _ticks(*self._across)
            ),
            f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle" opacity="0.75">'
            f"{escape(labels[0])}</text>",
            _upright(labels[1], 12, HEIGHT / 2) if labels[1] else "",
        ]

    @staticmethod
    def _grid(
        ends: tuple[float, float], line: Callable[[float], tuple[float, float, float, float]]
    ) -> list[str]:
        parts = []
        for at in _ticks(*ends):
            x1, y1, x2, y2 = line(at)
            parts.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                'stroke="currentColor" stroke-opacity="0.12"/>'
            )
        return parts


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between."""
    rough = (high - low) / TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(at * step, 12) for at in range(ceil(low / step), floor(high / step) + 1)]


def _some(count: int, size: float, least: float) -> range:
    """Return so many places that their names do not touch, each of which takes this much room."""
    return range(0, count, max(1, ceil(least / size)))


def _longest(names: Sequence[str]) -> float:
    """Return about how wide the longest of these names is."""
    return max((len(unescape(name)) for name in names), default=0) * LETTER_WIDTH


def _place(names: Sequence[str], at: int) -> str:
    return escape(_cut(str(names[at]))) if at < len(names) else str(at)


def _cut(text: str, most: int = 18) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _colour(share: float) -> str:
    at = share * (len(MAP) - 1)
    for index, (one, two) in enumerate(pairwise(MAP)):
        if at <= index + 1:
            mixed = (round(a + (b - a) * (at - index)) for a, b in zip(one, two, strict=True))
            return f"rgb({','.join(map(str, mixed))})"
    return f"rgb({','.join(map(str, MAP[-1]))})"


def _legend(at: int, name: str, colour: str) -> str:
    x = WIDTH - RIGHT - 8
    return (
        f'<text x="{x}" y="{TOP + 14 + 16 * at}" text-anchor="end" fill="{colour}" '
        f'font-weight="600">{escape(_cut(name, 30))}</text>'
    )


def _upright(text: str, x: float, y: float) -> str:
    return (
        f'<text transform="translate({x:g} {y:g}) rotate(-90)" text-anchor="middle" '
        f'opacity="0.75">{escape(text)}</text>'
    )
