"""The table of a real GPU: each model with the kernels that were chosen and with others.

The peer stands beside them.

Speeds come with the share of the adapter that they take up: of its read bandwidth in decoding, of
its arithmetic in prefill. Standard library only.
"""

import statistics
from collections.abc import Callable
from typing import Any

from bench.engines import MODEL, OURS, PROMPT_LENGTHS, TRANSFORMERS_WEBGPU
from bench.report import (
    NOTHING,
    UNFINISHED,
    align,
    counts_of,
    describe_agreement,
    glass_of,
    heading_of,
    megabytes,
    round_figure,
    table_in_markdown,
)

Json = dict[str, Any]
Say = Callable[[Json], str]  # what a figure says of an engine

KIND = "gpu"  # of results
MARK = "bench-gpu"  # of the tables in docs/speed.md and the README
CALLS = ("1", "2", "4", "8", "16")  # tokens of the calls that speculation is timed with
TEXTS = {"repeating": "a text that repeats itself", "other": "another prompt"}
# What ends the key of an engine.
WITHOUT, POLYFILLED, WITH_HALVES = "-without-subgroups", "-polyfilled", "-with-halves"
WITH_MATRICES = "-with-matrices"
ENDINGS = (WITHOUT, POLYFILLED, WITH_HALVES, WITH_MATRICES)
COLUMNS = (
    "as chosen",
    "without subgroups",
    "polyfilled",
    "in halves (`shader-f16`)",
    "by matrix units (`shader-f16`)",
    TRANSFORMERS_WEBGPU.title,
)


def cells_of(results: Json) -> list[list[str]]:
    """Return the table with its head: rows by model and figure."""
    engines = {engine["key"]: engine for engine in results["engines"]}
    models = [key for key in engines if key.startswith(OURS) and key == key_of_model(key)]
    rows = []
    for key in models:
        peer = TRANSFORMERS_WEBGPU.key if key == OURS else ""
        others = (f"{key}{ending}" for ending in ENDINGS)
        keys = (key, *others, peer)
        columns = [engines.get(name) for name in keys]
        name = model_name(key)
        contexts = sorted(int(context) for context in engines[key]["runs"])
        for figure, say in figures_of(results, contexts):
            cells = [say(engine) if engine else NOTHING for engine in columns]
            if any(cell != NOTHING for cell in cells):
                rows.append([f"{name}: {figure}", *cells])
    return without_empty([["", *COLUMNS], *rows])


def without_empty(cells: list[list[str]]) -> list[list[str]]:
    """Return a table without the columns that have nothing below their head."""
    head, *rows = cells
    used = [
        column
        for column in range(len(head))
        if not column or any(row[column] != NOTHING for row in rows)
    ]
    return [[row[column] for column in used] for row in cells]


def key_of_model(key: str) -> str:
    """Return the key of the engine that runs the same model with the kernels that are chosen."""
    for ending in ENDINGS:
        key = key.removesuffix(ending)
    return key


def model_name(key: str) -> str:
    """Return the name of the model that one of our engines runs."""
    return key.removeprefix(f"{OURS}-") if key != OURS else MODEL


def figures_of(results: Json, contexts: list[int]) -> list[tuple[str, Say]]:
    """Return every figure that an engine with runs at these contexts may have."""
    adapter = results["machine"]["adapter"]
    prompts = [str(PROMPT_LENGTHS[context]) for context in contexts]

    def speeds(of: list[int], figure: str, least: str, most: str) -> Say:
        def say_one(engine: Json, context: int) -> str:
            values = engine["runs"].get(str(context), {}).get(figure)
            if values is None:
                return NOTHING
            if not values:
                return UNFINISHED
            rate = statistics.median(values)
            share = ""
            if engine.get(least) and adapter.get(most):
                share = f" ({rate * engine[least] / adapter[most]:.0%})"
            return f"{round_figure(rate)}{share}"

        def say(engine: Json) -> str:
            said = [say_one(engine, context) for context in of]
            return " / ".join(said) if any(one != NOTHING for one in said) else NOTHING

        return say

    decode = speeds(contexts, "decode", "bytes_read_per_token", "read_bytes_per_s")
    prefill = speeds(contexts, "prefill", "arithmetic_per_token", "arithmetic_per_s")

    def first_token(engine: Json) -> str:
        return median(engine["runs"].get("128", {}).get("first_token_s", []), 1000)

    def start(engine: Json) -> str:
        found = [median(engine["start_up_s"][kind]) for kind in ("cold", "warm")]
        return " / ".join(found) if any(one != NOTHING for one in found) else NOTHING

    return [
        (f"decode at context {' / '.join(map(str, contexts))}, tok/s", decode),
        (f"prefill of {' / '.join(prompts)}, tok/s", prefill),
        ("first token of 128, ms", first_token),
        ("start, cold / warm, s", start),
        (f"a call of {' / '.join(CALLS)} tokens, ms", calls),
        *((f"{said}, with proposals, tok/s", proposals(text)) for text, said in TEXTS.items()),
        ("memory on the GPU", lambda engine: megabytes(engine["memory"].get("gpu_bytes"))),
        ("greedy ids as torch's", describe_agreement),
    ]


def calls(engine: Json) -> str:
    """Return what calls of several tokens cost."""
    found = (engine.get("speculation") or {}).get("calls_ms", {})
    return " / ".join(round_figure(found[size]) for size in CALLS) if found else NOTHING


def proposals(text: str) -> Say:
    """Return what says the speed of an answer to this text with proposals, and what they gain."""

    def say(engine: Json) -> str:
        found = (engine.get("speculation") or {}).get(text)
        if not found:
            return NOTHING
        plain, proposed = (statistics.median(found[way]) for way in ("plain", "proposed"))
        return f"{round_figure(proposed)} ({proposed / plain:.2f}×)"

    return say


def median(values: list[float], factor: float = 1.0) -> str:
    """Return the median in three digits."""
    return round_figure(factor * statistics.median(values)) if values else NOTHING


def remarks_of(results: Json) -> list[str]:
    """Return how often, what shares are of, and what did not finish."""
    adapter = results["machine"]["adapter"]
    remarks = [f"Medians of {repeats_of(results['engines'])} context."]
    if adapter.get("arithmetic_per_s"):
        remarks.append(
            "In parentheses: weights read in decoding, of the "
            f"{round_figure(adapter['read_bytes_per_s'] / 1e12)} TB/s that a plain kernel reads; "
            "products with weights in prefill, of the "
            f"{round_figure(adapter['arithmetic_per_s'] / 1e12)} TFLOP/s of one that does nothing "
            "but f32 arithmetic."
        )
    for engine in results["engines"]:
        remarks += [f"{engine['title']} did not finish: {fault}." for fault in engine["faults"]]
        if kernels := engine.get("facts", {}).get("kernels"):
            remarks.append(f"{engine['title']}: {kernels_of(kernels)}.")
        if engine.get("glass"):
            remarks.append(f"{engine['title']}: {glass_of(engine)}.")
    return remarks


def repeats_of(engines: list[Json]) -> str:
    """Say how many repeats of how many tokens there are at each context that some engine has."""
    runs: dict[str, Json] = {}
    for engine in engines:
        runs = {**engine["runs"], **runs}
    return counts_of({"runs": dict(sorted(runs.items(), key=lambda run: int(run[0])))})


def kernels_of(kernels: Json) -> str:
    """Return which kernels ran, in what arithmetic, and the figures that chose them."""
    said = (
        f"kernels {kernels['name']} ({kernels['chosen']}), one token by {kernels['one_token']}, "
        f"many by {kernels['many_tokens']}"
    )
    figures = [
        f"{each['kernels']} {round_figure(each['one_token_us'])} / "
        f"{round_figure(each['many_tokens_us'])}"
        for each in kernels["measured"]
    ]
    if figures:
        said += f"; a layer takes µs for 1 / 256 tokens by {', '.join(figures)}"
    return said


def as_text(results: Json) -> str:
    """Format the results for a terminal."""
    lines = align(cells_of(results))
    return "\n".join([heading_of(results), "", *lines, "", *remarks_of(results)])


def as_markdown(results: Json) -> str:
    """Format the table, its heading and its remarks for docs/speed.md."""
    return table_in_markdown(cells_of(results), heading_of(results), remarks_of(results))


def in_short(results: Json) -> str:
    """Format one row a model for the README: what the page chose, other GPUs, and the peer."""
    engines = {engine["key"]: engine for engine in results["engines"]}
    cells = [["", *(head for head, _, _ in SHORT)]]
    for key, engine in engines.items():
        if key == key_of_model(key):
            columns = [(engines.get(f"{key}{ending}"), say) for _, ending, say in SHORT]
            row = [say(column) if column else NOTHING for column, say in columns]
            cells.append([_model_of(engine), *row])
    return table_in_markdown(without_empty(cells), heading_of(results), remarks_of(results)[:1])


def _median_of(context: str, figure: str, factor: float = 1.0) -> Say:
    """Return what says the median of a figure at this context."""
    return lambda engine: median(engine["runs"].get(context, {}).get(figure, []), factor)


DECODE, PREFILL = _median_of("128", "decode"), _median_of("512", "prefill")
# The README's columns: head, the ending of the engine's key, what the cell says.
SHORT: tuple[tuple[str, str, Say], ...] = (
    ("decode at 128, tok/s", "", DECODE),
    ("without byte products", POLYFILLED, DECODE),
    ("by `shader-f16`", WITH_MATRICES, DECODE),
    ("of a text that repeats itself, with proposals", "", proposals("repeating")),
    ("prefill of 512, tok/s", "", PREFILL),
    ("without byte products", POLYFILLED, PREFILL),
    ("by `shader-f16`", WITH_MATRICES, PREFILL),
    ("first token, ms", "", _median_of("128", "first_token_s", 1000)),
    ("GPU memory", "", lambda engine: megabytes(engine["memory"].get("gpu_bytes"))),
)


def _model_of(engine: Json) -> str:
    """Return the model's name, and the engine's where that is not inpage."""
    if not engine["key"].startswith(OURS):
        return f"{MODEL}, {engine['title']}"
    return model_name(engine["key"])
