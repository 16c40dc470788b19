"""A chart of what engines did with the model they all have.

bench/.venv/bin/python -m bench.chart [RESULTS.json]: beside the results, by default those of the
last run on this kind of processor.
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from bench.machine import results_path
from bench.report import heading_of, round_figure

COLOURS = ("#c2410c", "#475569", "#94a3b8", "#cbd5e1", "#e2e8f0")
# The title of a panel, the context of the run it shows (none: of the start), the figure
PANELS = (
    ("decode at context 128, tok/s", "128", "decode"),
    ("decode at context 512, tok/s", "512", "decode"),
    ("prefill of 128, tok/s", "128", "prefill"),
    ("prefill of 512, tok/s", "512", "prefill"),
    ("start, cold, s", None, "cold"),
    ("start, warm, s", None, "warm"),
)


def draw(results: dict[str, Any], out: Path) -> None:
    """Draw one panel for each figure; the file is replaced only when it is whole."""
    engines = [engine for engine in results["engines"] if engine["check"]]  # shapes have none
    figure, panels = plt.subplots(3, 2, figsize=(11, 7), layout="constrained")
    for axes, (title, context, name) in zip(panels.flat, PANELS, strict=True):
        draw_panel(axes, title, {e["title"]: values_of(e, context, name) for e in engines})
    figure.suptitle("Higher is better, but for start-up", fontsize=10)
    figure.supxlabel(heading_of(results), fontsize=7)
    partial = out.with_name(f".{out.name}.part")
    figure.savefig(partial, format="png", dpi=120)
    partial.replace(out)


def values_of(engine: dict[str, Any], context: str | None, name: str) -> list[float]:
    """Return one value for each repeat; none where the engine was not measured so."""
    if context is None:
        start_ups: list[float] = engine["start_up_s"][name]
        return start_ups
    values: list[float] = engine["runs"].get(context, {}).get(name, [])
    return values


def draw_panel(axes: Axes, title: str, measured: dict[str, list[float]]) -> None:
    """Bars of medians with the spread on them; what was not measured has none."""
    medians = [statistics.median(values) if values else 0.0 for values in measured.values()]
    reach = max([max(values) for values in measured.values() if values], default=1.0)
    axes.barh([*measured], medians, color=COLOURS[: len(measured)])
    for row, (values, middle) in enumerate(zip(measured.values(), medians, strict=True)):
        if values:
            axes.hlines(row, min(values), max(values), color="black", linewidth=1.2)
        text = round_figure(middle) if values else "not measured"
        axes.text(max([*values, 0]) + reach * 0.02, row, text, va="center", fontsize=8)
    axes.set_xlim(0, reach * 1.2)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10, loc="left")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    path = Path(sys.argv[1]) if sys.argv[1:] else results_path(Path(__file__).parent)
    draw(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".png"))
