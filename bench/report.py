"""The report of a bench, as a table for people and as Markdown. Standard library only."""

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.engines import OURS

Json = dict[str, Any]
Row = tuple[str, Callable[[Json], str]]  # what it is called, what it says of an engine

NOTHING = "–"
UNFINISHED = "did not finish"
ANSWER = 64  # tokens of an answer that somebody waits for
MAX_OPS = 5  # that the remarks name


# Figures -----------------------------------------------------------------------------------------


def median_and_spread(values: Sequence[float]) -> str:
    """Return the median, and the least and the most where there are several."""
    if not values:
        return NOTHING
    middle = round_figure(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({round_figure(min(values))}–{round_figure(max(values))})"


def round_figure(value: float) -> str:
    """Three digits."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def megabytes(nbytes: int | None) -> str:
    """Format as megabytes of 10^6 bytes."""
    return NOTHING if nbytes is None else f"{nbytes / 1e6:,.1f} MB"


# The table ---------------------------------------------------------------------------------------


def figure_rows(results: Json) -> list[Row]:
    """Every figure that some engine has."""
    contexts = sorted({int(c) for engine in results["engines"] for c in engine["runs"]})

    def run(context: int, figure: str, factor: float = 1.0) -> Callable[[Json], str]:
        def say(engine: Json) -> str:
            if str(context) not in engine["runs"]:
                return NOTHING
            values = [value * factor for value in engine["runs"][str(context)][figure]]
            return median_and_spread(values) if values else UNFINISHED

        return say

    def start(figure: str, kind: str) -> Callable[[Json], str]:
        return lambda engine: median_and_spread(engine[figure][kind])

    def answered(kind: str) -> Callable[[Json], str]:
        """Add up medians: of the start, of a prompt, of an answer's tokens."""

        def say(engine: Json) -> str:
            short = engine["runs"].get("128", {})
            parts = (engine["start_up_s"][kind], short.get("first_token_s"), short.get("decode"))
            if not all(parts):
                return NOTHING
            begun, read, speed = map(statistics.median, parts)
            return round_figure(begun + read + ANSWER / speed)

        return say

    def fetched(kind: str) -> Callable[[Json], str]:
        return lambda engine: megabytes(engine["fetched_bytes"].get(kind))

    def memory(name: str) -> Callable[[Json], str]:
        return lambda engine: megabytes(engine["memory"].get(name))

    def bandwidth(engine: Json) -> str:
        """Weights read while decoding at context 128, of what the adapter reads at its best."""
        decode = engine["runs"].get("128", {}).get("decode")
        if not decode or not engine.get("bytes_read_per_token"):
            return NOTHING
        rate = statistics.median(decode) * engine["bytes_read_per_token"]
        return f"{rate / results['machine']['adapter']['read_bytes_per_s']:.0%}"

    return [
        *((f"decode at context {c}, tok/s", run(c, "decode")) for c in contexts),
        *((f"prefill of {c}, tok/s", run(c, "prefill")) for c in contexts if c < 2000),
        ("first token of 128, ms", run(128, "first_token_s", 1000)),
        ("start, cold, s", start("start_up_s", "cold")),
        ("start, warm, s", start("start_up_s", "warm")),
        ("of it the model, cold, s", start("load_s", "cold")),
        ("of it the model, warm, s", start("load_s", "warm")),
        (f"opened → 128 tokens read, {ANSWER} written, cold, s", answered("cold")),
        (f"opened → 128 tokens read, {ANSWER} written, warm, s", answered("warm")),
        ("fetched, cold", fetched("cold")),
        ("fetched, warm", fetched("warm")),
        ("memory of the page", memory("renderer_bytes")),
        ("JavaScript's heap, workers aside", memory("js_heap_bytes")),
        ("memory on the device", memory("gpu_bytes")),
        ("of the adapter's read bandwidth", bandwidth),
        ("greedy ids as torch's", describe_agreement),
    ]


def describe_agreement(engine: Json) -> str:
    """Return how many ids of the greedy continuation are torch's."""
    check = engine["check"]
    return f"{check['agreed']} of {check['of']}" if check else NOTHING


def cells_of(results: Json) -> list[list[str]]:
    """Return the table with its head: a row for each figure, a column for each engine."""
    engines = results["engines"]
    table = [["", *(engine["title"] for engine in engines)]]
    rows = [[name, *(say(engine) for engine in engines)] for name, say in figure_rows(results)]
    return [*table, *(row for row in rows if any(cell != NOTHING for cell in row[1:]))]


def ratios_of(results: Json) -> dict[str, dict[str, float]]:
    """Ours over theirs, by figure and peer: medians of tokens per second of the same run.

    Where several engines are ours, the first one counts.
    """
    ours = next((e for e in results["engines"] if e["key"].startswith(OURS)), None)
    ratios: dict[str, dict[str, float]] = {}
    for engine in results["engines"]:
        if ours is None or engine is ours:
            continue
        for context, run in engine["runs"].items():
            for figure in ("prefill", "decode"):
                mine = ours["runs"].get(context, {}).get(figure)
                if mine and run[figure]:
                    ratio = statistics.median(mine) / statistics.median(run[figure])
                    ratios.setdefault(f"{figure} {context}", {})[engine["key"]] = round(ratio, 3)
    return ratios


# Words -------------------------------------------------------------------------------------------


def heading_of(results: Json) -> str:
    """Say when, on which machine and adapter, and at which commit it was measured."""
    machine = results["machine"]
    adapter = machine["adapter"]
    kind = " (software)" if adapter["software"] else ""
    names = (adapter["vendor"], adapter["architecture"], adapter["device"], adapter["description"])
    return (
        f"{results['date']}, {machine['cpu']} with {machine['cores']} cores, {machine['browser']}, "
        f"adapter {' '.join(filter(None, names))}{kind}, commit {results['commit']}"
    )


def remarks_of(results: Json) -> list[str]:
    """Return what the table alone does not tell: how often, and what did not finish."""
    ours = counts_of(results["engines"][0])
    remarks = [f"Medians, with the least and the most in parentheses, of {ours} context."]
    for engine in results["engines"]:
        counts = counts_of(engine)
        said = [] if counts in ours else [f"{counts} context"]
        if said or engine["notes"]:
            remarks.append(f"{engine['title']}: {'; '.join([*said, *engine['notes']])}.")
        remarks += [f"{engine['title']} did not finish: {fault}." for fault in engine["faults"]]
        if engine.get("gpu_ops"):
            remarks.append(f"{engine['title']}, a token at context 128: {ops_of(engine)}.")
        if engine.get("submission"):
            remarks.append(f"{engine['title']}: {submission_of(engine)}.")
        if engine.get("glass"):
            remarks.append(f"{engine['title']}: {glass_of(engine)}.")
    return remarks


def ops_of(engine: Json) -> str:
    """Return the GPU's milliseconds, in all and of the ops that take the most of them."""
    ops = engine["gpu_ops"]
    total = round_figure(sum(op["ms"] for op in ops))
    most = ", ".join(
        f"{op['op']} {round_figure(op['ms'])} ({op['share']:.0%})" for op in ops[:MAX_OPS]
    )
    return f"{total} ms of the device, by its clock, of which {most}"


def submission_of(engine: Json) -> str:
    """Say in words what one call for a whole plan saves."""
    cost = engine["submission"]
    return (
        f"{cost['dispatches']} dispatches are submitted in {round_figure(cost['replayed_ms'])} ms "
        f"by one call, in {round_figure(cost['one_by_one_ms'])} ms one by one from Python"
    )


def glass_of(engine: Json) -> str:
    """Say in words what one steering vector costs, and how long the views take."""
    plain, steered = (statistics.median(engine["glass"][key]) for key in ("plain", "steered"))
    views = ", ".join(
        f"{view} {round_figure(seconds)} s" for view, seconds in engine["glass"]["views_s"].items()
    )
    return (
        f"decode with one steering vector {round_figure(steered)} tok/s, without one "
        f"{round_figure(plain)} ({steered / plain:.2f}x); views of a short text: {views}"
    )


def counts_of(engine: Json) -> str:
    """Say how many repeats of how many tokens there are, at each context."""
    return ", ".join(
        f"{len(run['decode'])} × {run['decoded_tokens']} tokens at {context}"
        for context, run in engine["runs"].items()
    )


def as_text(results: Json) -> str:
    """Format for a terminal: aligned columns, then how inpage compares with each peer."""
    ratios = [
        f"  {figure}: " + ", ".join(f"{ratio:g} × {peer}" for peer, ratio in peers.items())
        for figure, peers in ratios_of(results).items()
    ]
    said = ["inpage in tokens per second, as a multiple of a peer:", *ratios] if ratios else []
    lines = align(cells_of(results))
    return "\n".join([heading_of(results), "", *lines, "", *remarks_of(results), *said])


def align(table: list[list[str]]) -> list[str]:
    """Lines of a table whose columns begin one below the other."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def as_markdown(results: Json) -> str:
    """Format the table, its heading and its remarks for docs/speed.md."""
    return table_in_markdown(cells_of(results), heading_of(results), remarks_of(results))


def table_in_markdown(cells: list[list[str]], heading: str, remarks: list[str]) -> str:
    """Format a table, and what is said about it below."""
    return "\n".join([*in_pipes(cells), "", f"{heading}. {' '.join(remarks)}"])


def in_pipes(table: list[list[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    head, *rows = table
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


# Files -------------------------------------------------------------------------------------------


def put_between_marks(document: Path, markdown: str, mark: str) -> None:
    """Replace what stands between the lines with this mark."""
    text = document.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise ValueError(f"{document} lacks the lines {begin} and {end}, once each")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    write(document, f"{before}{begin}\n{markdown}\n{end}{after}")


def write_results(path: Path, results: Json) -> None:
    """Write the results as JSON, from which the table can be made again."""
    write(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file that is replaced only when the new one is whole."""
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
