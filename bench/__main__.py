"""The command behind `make bench`: measure inpage and its peers in this machine's Chromium.

python -m bench [--quick] [--only KEY ...] [--results FILE]
python -m bench --readme                    puts the table of the last run into docs/speed.md,
                                            beside those of other kinds of processors
python -m bench --readme --results FILE     the same of another run; one on a real GPU, such as
                                            bench/results-gpu.json, goes into the README in short
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bench import gpu_report, machine
from bench.browser import page_opener
from bench.engines import MODEL, OURS, PROBE, engines
from bench.files import BENCH
from bench.prompts import make_prompts
from bench.report import as_markdown, as_text, put_between_marks, write_results
from bench.roofline import bytes_read_per_token
from bench.rounds import OpenPage, run_bench
from bench.server import serving
from py_runtime.folder.layout import constants_of
from py_runtime.folder.on_disk import open_model_folder
from tools.errors import UserError, exit_status
from tools.files import ROOT

README, SPEED = ROOT / "README.md", ROOT / "docs" / "speed.md"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the options that `make bench` passes on."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measure inpage and peers.")
    parser.add_argument("--quick", action="store_true", help="few repeats, of inpage and wllama")
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY", help="these engines alone")
    parser.add_argument("--results", type=Path, default=machine.results_path(BENCH), metavar="FILE")
    parser.add_argument(
        "--readme",
        action="store_true",
        help="put the last table into the docs, measure nothing",
    )
    return parser.parse_args(arguments)


def bench(options: argparse.Namespace) -> None:
    """Measures every engine that was asked for, prints the table, and keeps the results."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    model = ROOT / "models" / MODEL
    prompts = make_prompts(model)
    with serving(with_peers=True) as address, sync_playwright() as playwright:
        open_page = page_opener(playwright, address)
        adapter = probe(open_page)
        chosen = engines(adapter["software"], options.quick, options.only)
        if not chosen:
            raise UserError(f"--only names engines this bench lacks: {', '.join(options.only)}")
        results: dict[str, Any] = {
            "date": machine.today(),
            "commit": machine.commit_of(ROOT),
            "machine": machine.describe(adapter),
            "engines": run_bench(chosen, open_page, prompts, say),
            "seconds": round(time.monotonic() - started),
        }
    program = open_model_folder(model).program
    for engine in results["engines"]:
        if engine["key"] == OURS:
            engine["bytes_read_per_token"] = bytes_read_per_token(constants_of(program))
    write_results(options.results, results)
    print(as_text(results))


def probe(open_page: OpenPage) -> dict[str, Any]:
    """Return the browser's description of its adapter, from a page and a profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        page = open_page(PROBE, Path(profile))
        try:
            found: dict[str, Any] = page.call("open", limit_s=PROBE.limit_s)
        finally:
            page.close()
    return found


def put_table(options: argparse.Namespace) -> None:
    """Put the table of results measured before into the documents."""
    try:
        results = json.loads(options.results.read_text(encoding="utf-8"))
        if results.get("kind") == gpu_report.KIND:
            put_between_marks(SPEED, gpu_report.as_markdown(results), gpu_report.MARK)
            put_between_marks(README, gpu_report.in_short(results), gpu_report.MARK)
        else:
            mark = f"bench-{machine.kind_of(results['machine']['system'])}"
            put_between_marks(SPEED, as_markdown(results), mark)
    except (OSError, ValueError) as error:
        raise UserError(f"the table was not written: {error}") from None


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    options = parse(arguments)

    return exit_status(lambda: put_table(options) if options.readme else bench(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
