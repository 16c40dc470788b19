"""The bench on this machine's graphics processor: python3 run.py --table.

The folder around this file has all it needs (`make bench-gpu` wrote it) but the browser: a program,
or an unpacked folder with chromium/, lib/ and icd/; one named bundle/ is found here by itself.
Standard library only. Writes results.json.
"""

import argparse
import concurrent.futures
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.engines import (
    INPAGE,
    INPAGE_CPU,
    LONG_CONTEXT,
    LONGEST_CONTEXT,
    MODEL,
    OURS,
    PROBE,
    TRANSFORMERS_WASM,
    TRANSFORMERS_WEBGPU,
    WLLAMA,
    Engine,
    Run,
)
from bench.fill import TEMPLATE, fill
from bench.gpu_report import (
    KIND,
    POLYFILLED,
    WITH_HALVES,
    WITH_MATRICES,
    WITHOUT,
    as_text,
    key_of_model,
)
from bench.remote import Browser, RemotePage, Server
from bench.report import write_results
from bench.rounds import Json, OpenPage, Page, Say, run_bench

Column = Callable[[Engine], Engine]  # of the model that the engine runs

HERE = Path(__file__).resolve().parent
SITE, TEMPLATES = HERE / "site", HERE / "templates"
# Makes of dot4I8Packed what it is on GPUs that have no instruction for it, as Apple's.
POLYFILL = "--enable-dawn-features=polyfill_packed_4x8_dot_product"
# Offers shader-f16, and with it matrix units of halves, on NVIDIA's processors, too.
HALVES = "--enable-dawn-features=vulkan_enable_f16_on_nvidia,use_vulkan_memory_model"


def parse() -> argparse.Namespace:
    """Parse the options of run.py."""
    parser = argparse.ArgumentParser(prog="run.py", description="Measure on this machine's GPU.")
    found = HERE / "bundle" if (HERE / "bundle").is_dir() else shutil.which("chromium")
    parser.add_argument("--browser", type=Path, default=found, metavar="CHROMIUM")
    parser.add_argument("--flag", action="append", default=[], help="Chromium's, instead of ours")
    shapes = sorted(folder.name for folder in TEMPLATES.glob("*"))
    plan = parser.add_mutually_exclusive_group()
    plan.add_argument(
        "--table",
        action="store_true",
        help="what docs/speed.md has: the models and the columns of TABLE, each by itself",
    )
    plan.add_argument("--shapes", nargs="*", choices=shapes, default=[], metavar="SHAPE")
    parser.add_argument(
        "--without-subgroups", action="store_true", help="inpage's models without them, too"
    )
    parser.add_argument(
        "--polyfilled", action="store_true", help="inpage's models without byte products, too"
    )
    parser.add_argument(
        "--halves", action="store_true", help="inpage's models in halves (shader-f16), too"
    )
    parser.add_argument(
        "--matrices", action="store_true", help="inpage's models by matrix units of halves, too"
    )
    parser.add_argument("--cpu", action="store_true", help="the engines that need no GPU instead")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="these engines alone")
    parser.add_argument(
        "--quick", action="store_true", help="engines one after the other, which load faster so"
    )
    parser.add_argument("--repeats", type=int, default=5, help="of every run (%(default)s)")
    parser.add_argument("--start-ups", type=int, default=3, help="cold and warm (%(default)s)")
    parser.add_argument("--results", type=Path, default=HERE / "results.json", metavar="FILE")
    parser.add_argument(
        "--go-on", action="store_true", help="keep what the results have, and measure the rest"
    )
    options = parser.parse_args()
    if options.table:
        options.shapes = [name for name in TABLE if name != MODEL]
        options.quick = True
    if absent := [shape for shape in options.shapes if shape not in shapes]:
        parser.error(f"this folder was made without --shapes {' '.join(absent)}")
    if options.browser is None or not options.browser.exists():
        parser.error("there is no Chromium here; say where it is with --browser")
    return options


def engines(options: argparse.Namespace) -> list[Engine]:
    """inpage, its peers where the folder has them, and the synthetic models that were asked for."""
    with_peers = (SITE / "peers" / "models").is_dir()
    if options.cpu:
        return repeated([INPAGE_CPU, *([WLLAMA, TRANSFORMERS_WASM] if with_peers else [])], options)
    models = {MODEL: INPAGE, **{shape: synthetic(shape) for shape in options.shapes}}
    columns = columns_of(options)
    others = [
        other(engine)
        for name, engine in models.items()
        for other in (TABLE[name] if options.table else columns)
    ]
    peers = [TRANSFORMERS_WEBGPU] if with_peers else []
    return repeated([*models.values(), *others, *peers], options)


def columns_of(options: argparse.Namespace) -> list[Column]:
    """Return the columns that were asked for by their own options."""
    wanted = {
        without_subgroups: options.without_subgroups,
        polyfilled: options.polyfilled,
        with_halves: options.halves,
        with_matrices: options.matrices,
    }
    return [column for column, is_wanted in wanted.items() if is_wanted]


def repeated(chosen: list[Engine], options: argparse.Namespace) -> list[Engine]:
    """Return the engines that were asked for, measured as often as was asked for."""
    return [
        replace(
            engine,
            runs=tuple(replace(run, repeats=repeats_of(run, options)) for run in engine.runs),
            start_ups=options.start_ups if engine.start_ups else 0,
        )
        for engine in chosen
        if not options.only or engine.key in options.only
    ]


def repeats_of(run: Run, options: argparse.Namespace) -> int:
    """Return how often to measure a run: a long one no more often than it says itself."""
    asked: int = options.repeats
    return min(asked, run.repeats) if run.is_long else asked


def synthetic(shape: str) -> Engine:
    """Return a model of random weights, made here; torch never saw it, so no output is checked."""
    path = f"models/{shape}-random/"
    template = json.loads((TEMPLATES / shape / TEMPLATE).read_text())
    runs: tuple[Run, ...] = (Run(128), Run(512), Run(2000))
    context, caches = template["manifest"]["context"], {}
    if context == LONG_CONTEXT:
        runs = (*runs[:2], Run(LONG_CONTEXT, repeats=3))
    elif context == LONGEST_CONTEXT:
        runs, caches = (*runs[:2], Run(LONGEST_CONTEXT, repeats=2)), {"kv": "q8"}
    return Engine(
        f"{OURS}-{shape}",
        f"inpage, WebGPU, {shape} of random weights",
        INPAGE.page,
        {**INPAGE.options, "model": path, **caches},
        runs=runs,
        checked=0,
        start_ups=0,
        limit_s=400,
        beside=("speculation",) if context < LONGEST_CONTEXT else (),
    )


def without_subgroups(engine: Engine) -> Engine:
    """Return the engine with the kernels of an adapter that has no subgroups."""
    return replace(
        engine,
        key=f"{engine.key}{WITHOUT}",
        title=f"{engine.title}, without subgroups",
        options={**engine.options, "kernels": "memory"},
        start_ups=0,
        beside=(),
    )


def polyfilled(engine: Engine) -> Engine:
    """Return the engine on a GPU that has no instruction for products of bytes."""
    return replace(
        engine,
        key=f"{engine.key}{POLYFILLED}",
        title=f"{engine.title}, polyfilled",
        # Features say nothing of the instruction: what was measured with it would be taken.
        options={**engine.options, "anew": True},
        flags=(POLYFILL,),
        start_ups=0,
        beside=(),
    )


def with_halves(engine: Engine) -> Engine:
    """Return the engine with products in halves, on a GPU that has shader-f16."""
    return replace(
        engine,
        key=f"{engine.key}{WITH_HALVES}",
        title=f"{engine.title}, in halves",
        options={**engine.options, "kernels": "halves"},
        flags=(HALVES,),
        start_ups=0,
        beside=(),
    )


def with_matrices(engine: Engine) -> Engine:
    """Return the engine with products of many tokens by matrix units, on a GPU that has them."""
    return replace(
        engine,
        key=f"{engine.key}{WITH_MATRICES}",
        title=f"{engine.title}, by matrix units",
        options={**engine.options, "kernels": "matrices"},
        flags=(HALVES,),
        start_ups=0,
        beside=(),
    )


# Models, and the columns that the table has of them beside what the page chooses.
TABLE: dict[str, tuple[Column, ...]] = {
    MODEL: (polyfilled, with_halves, with_matrices),
    "llama-3.2-1b": (polyfilled, with_matrices),
    "llama-3.1-8b-q4_k_m": (polyfilled, with_matrices),
    "gemma-3-1b": (),
    "qwen3.5-0.8b": (),
    "llama-3.2-1b-32k": (),
}


def measure(
    chosen: list[Engine], open_page: OpenPage, prompts: Json, say: Say, quick: bool
) -> Iterator[list[Json]]:
    """Measure all in turns; or, quick, each by itself, so that a shared model is stored once.

    Yields what is there as it grows, so that a run that is cut short has measured something.
    """
    if not quick:
        yield run_bench(chosen, open_page, prompts, say)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profiles:

        def open_again(engine: Engine, profile: Path) -> Page:
            # All columns of a model load it from what the first of them has stored.
            return open_page(engine, Path(profiles) / key_of_model(profile.name))

        found: dict[str, Json] = {}
        for engine in sort_by_model(chosen):
            (found[engine.key],) = run_bench([engine], open_again, prompts, say)
            yield [found[one.key] for one in chosen if one.key in found]


def sort_by_model(chosen: list[Engine]) -> list[Engine]:
    """Sort the engines so that those of one model follow each other; peers have the first one."""
    models = [model_of(engine) for engine in chosen]
    return sorted(chosen, key=lambda engine: models.index(model_of(engine)))


def model_of(engine: Engine) -> str:
    """Return the key of the engine that has the same model with the kernels that are chosen."""
    return key_of_model(engine.key) if engine.key.startswith(OURS) else OURS


def kept_results(options: argparse.Namespace) -> dict[str, Json]:
    """Return what earlier results have, by the keys of engines; without those that failed."""
    if not options.go_on or not options.results.is_file():
        return {}
    measured = json.loads(options.results.read_text())["engines"]
    return {engine["key"]: engine for engine in measured if not engine["faults"]}


def make_models(shapes: list[str], say: Say) -> None:
    """Make the models of random weights that are not there yet, all at once."""
    models = {shape: SITE / "models" / f"{shape}-random" for shape in shapes}
    absent = [shape for shape, model in models.items() if not model.is_dir()]
    with concurrent.futures.ProcessPoolExecutor(max(1, len(absent))) as processes:
        making = {processes.submit(fill, TEMPLATES / each, models[each]): each for each in absent}
        for made in concurrent.futures.as_completed(making):
            made.result()
            say(f"made {making[made]}")


def main() -> None:
    """Measures, prints the table, and keeps the results."""
    options = parse()
    # Being stopped closes the browsers, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    about = json.loads((HERE / "about.json").read_text())
    before = kept_results(options)
    chosen = [engine for engine in engines(options) if engine.key not in before]
    make_models(options.shapes, say)
    server, browser = Server(SITE), Browser(options.browser.resolve(), options.flag)

    def open_page(engine: Engine, profile: Path) -> RemotePage:
        return RemotePage(server, browser, engine, profile)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        page = open_page(PROBE, Path(profile))
        adapter = page.call("open", limit_s=PROBE.limit_s)
        page.close()
    say(f"adapter: {json.dumps(adapter)}")
    results: dict[str, Any] = {
        "kind": KIND,
        "date": machine.today(),
        "commit": about["commit"],
        "machine": machine.describe(adapter),
    }
    for measured in measure(chosen, open_page, about["prompts"], say, options.quick):
        for engine in measured:
            key = key_of_model(engine["key"])
            for least in ("bytes_read_per_token", "arithmetic_per_token"):
                engine[least] = about[least].get(key)
        found = before | {engine["key"]: engine for engine in measured}
        results["engines"] = [found[one.key] for one in engines(options) if one.key in found]
        results["seconds"] = round(time.monotonic() - started)
        write_results(options.results, results)
    print(as_text(results))


if __name__ == "__main__":
    main()
