"""The backend that matplotlib draws with in a notebook: `show()` puts figures below the cell."""

from typing import Any

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas  # noqa: F401

from py_runtime.notebook import cell, rich


class Drawn:
    """A picture of a figure, as it is now."""

    def __init__(self, png: str, title: str) -> None:
        self._png = png
        self._title = title

    def _repr_png_(self) -> str:
        return self._png

    def __repr__(self) -> str:
        return self._title


def show(*_: Any, **__: Any) -> None:
    """Show all open figures, and close them."""
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        title = figure.axes[0].get_title() if figure.axes else ""
        cell.display(Drawn(rich.png_of(figure), title or f"Figure {number}"))
    pyplot.close("all")
