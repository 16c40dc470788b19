"""Values as cells show them: their own forms, tables, arrays with their range, small plots."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from py_runtime.notebook import plot
from py_runtime.notebook.rich import bundle


class Own:
    def _repr_html_(self) -> str:
        return "<b>own</b>"

    def _repr_png_(self) -> bytes:
        return b"\x89PNG"

    def _repr_svg_(self) -> str:
        raise ValueError("not now")


def test_a_value_shows_the_forms_it_has() -> None:
    shown = bundle(Own())
    assert shown["text/html"] == "<b>own</b>"
    assert shown["image/png"] == "iVBORw=="
    assert "image/svg+xml" not in shown
    assert "Own object" in shown["text/plain"]
    assert bundle(None) == {}
    assert bundle(Own).keys() == {"text/plain"}


def test_an_array_shows_its_type_shape_range_and_corners() -> None:
    array = np.arange(400, dtype=np.float32).reshape(20, 20)
    array[0, 0] = np.nan
    html = bundle(array)["text/html"]
    assert "float32 · 20 × 20 · 1 … 399" in html
    assert "1 not finite" in html
    assert html.count("<tr>") == 7
    assert "⋮" in html
    assert "… 1 more" not in html
    assert bundle(np.array([True, False]))["text/html"].startswith("<div>bool · 2</div>")
    assert "text/html" not in bundle(np.float32(1))
    assert "text/html" in bundle(np.zeros((2, 3, 4)))
    assert bundle(np.zeros((0, 3))).keys() == {"text/plain"}


def test_rows_with_the_same_names_are_a_table() -> None:
    html = bundle([{"a": 1, "b": 0.123456}, {"a": 2, "b": "<i>"}])["text/html"]
    assert "<th>a</th><th>b</th>" in html
    assert "<td>0.1235</td>" in html
    assert "&lt;i&gt;" in html
    assert "text/html" not in bundle([{"a": 1}, {"b": 1}])
    assert "text/html" not in bundle([{"a": [1]}, {"a": [2]}])


@pytest.mark.parametrize(
    "drawn",
    [
        plot.lines([1, 2, float("nan"), 4], title="One <line>", labels=("x", "y")),
        plot.lines({"a": [1, 2], "b": np.array([3, 3])}, x=[10, 20]),
        plot.lines([]),
        plot.scatter([1, 2], [3, 4], ["p & q", "r"]),
        plot.bars({"one": 1.5, "minus": -2, "none": float("nan")}, title="Bars"),
        plot.heat(np.eye(30), rows=[f"row {at}" for at in range(30)], labels=("column", "row")),
        plot.heat([[np.inf, 1.0]]),
    ],
)
def test_plots_are_drawings_that_can_be_read(drawn: plot.Plot) -> None:
    root = ElementTree.fromstring(drawn.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "nan" not in drawn.svg.replace(": nan", "").replace(">nan<", "")
    assert bundle(drawn)["image/svg+xml"] == drawn.svg


def test_names_beside_a_map_do_not_touch() -> None:
    names = [f"token {at}" for at in range(40)]
    drawn = plot.heat(np.eye(3, 40), rows=["a long name of a row"] * 3, columns=names)
    texts = ElementTree.fromstring(drawn.svg).iter("{http://www.w3.org/2000/svg}text")
    upright = [each.attrib["transform"] for each in texts if (each.text or "").startswith("token")]
    places = [float(each.split("(")[1].split()[0]) for each in upright if "rotate(-90)" in each]
    assert len(places) == len(upright) > 10
    assert min(b - a for a, b in pairwise(places)) >= 12
    few = plot.heat(np.eye(2), columns=["a", "b"])
    assert "rotate" not in few.svg, "short ones stand side by side"


def test_a_line_has_its_points_where_they_belong() -> None:
    points = ElementTree.fromstring(plot.lines([0, 10, 5]).svg).find(
        ".//{http://www.w3.org/2000/svg}polyline"
    )
    assert points is not None
    places = [tuple(map(float, point.split(","))) for point in points.attrib["points"].split()]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    heights = [y for _, y in places]
    assert heights[1] < heights[2] < heights[0]  # y grows downwards
