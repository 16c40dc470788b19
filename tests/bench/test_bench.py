"""The bench's own arithmetic, its rounds with pages of straw, its table and its pages."""

import json
import statistics
import subprocess
import threading
import urllib.request
from argparse import Namespace
from pathlib import Path
from platform import machine as platform
from typing import Any

import numpy as np
import pytest

from bench import gpu_report, machine, remote
from bench.engines import LONG_CONTEXT, MODEL, OURS, PROBE, Engine, Run, engines
from bench.files import own_page
from bench.gpu_report import ENDINGS, POLYFILLED, WITH_HALVES, WITH_MATRICES, WITHOUT
from bench.prompts import VARIANTS, cut
from bench.remote import Mailbox, Server
from bench.report import as_markdown, as_text, cells_of, put_between_marks, ratios_of, round_figure
from bench.rounds import PageFault, PageTimeout, agreement, run_bench, speeds
from bench.run_gpu import TABLE, kept_results, polyfilled, repeated, sort_by_model
from bench.synthetic import SHAPES, byte_tokenizer
from bench.zero_points import integer_zero_points
from py_runtime.tokens import Tokenizer
from tools.errors import UserError
from tools.files import ROOT

pytestmark = pytest.mark.torch

PROMPT = {"ids": [5, 6], "text": "ab"}
PROMPTS = {
    "check": {**PROMPT, "continuation": [1, 2, 3, 4]},
    "contexts": {"128": [PROMPT], "512": [PROMPT], str(LONG_CONTEXT): [PROMPT]},
}
ADAPTER = {
    "vendor": "acme",
    "architecture": "",
    "device": "",
    "description": "soft",
    "software": True,
    "read_bytes_per_s": 4e9,
}
MACHINE = {"cpu": "a CPU", "cores": 2, "browser": "Chromium 1.2", "adapter": ADAPTER}


def engine(key: str, **changes: Any) -> Engine:
    settings = {"runs": (Run(128, tokens=2, repeats=2),), "checked": 3, "start_ups": 1, **changes}
    return Engine(key, key.title(), f"{key}.html", {}, **settings)


class StrawPage:
    """A page that counts, and fails where it is told to."""

    def __init__(self, key: str, profile: Path, log: list[str], failing: str | None) -> None:
        self.key, self.profile, self.log, self.failing = key, profile, log, failing

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        self.log.append(f"{self.key} {method}")
        if method == "reached":
            return 1
        if method == self.failing:
            raise PageTimeout(f"not done after {limit_s:.0f} s")
        if method == "open":
            return {"ready_s": 2.0, "load_s": 1.5, "facts": {"version": "9"}}
        if method == "memory":
            return {"gpu_bytes": 10, "js_heap_bytes": 20}
        if method == "gpuOps":
            return [
                {"op": "linear", "count": 3, "ms": 6.0, "share": 0.75},
                {"op": "norm", "count": 1, "ms": 2.0, "share": 0.25},
            ]
        if method == "submission":
            return {"dispatches": 300, "replayed_ms": 0.4, "one_by_one_ms": 8.0}
        if method == "speculation":
            both = {"plain": [10.0, 8.0, 12.0], "proposed": [15.0]}
            calls = {str(size): float(size) for size in (1, 2, 4, 8, 16)}
            return {"calls_ms": calls, "repeating": both, "other": both}
        if method == "glass":
            return {"plain": [10.0, 12.0, 11.0], "steered": [9.9], "views_s": {"lens": 0.25}}
        count = arguments[1]
        ids = list(range(1, count + 1))
        return {"ids": ids, "marks": [[100.0 * token, token] for token in ids]}

    def fetched_bytes(self) -> int:
        return 1000

    def renderer_bytes(self) -> int | None:
        return 3000

    def close(self) -> None:
        self.log.append(f"{self.key} close")


def run(chosen: list[Engine], failing: dict[str, str]) -> tuple[list[Any], list[str], list[Path]]:
    """Return the results, what the pages were asked, and the profiles they were opened with."""
    log: list[str] = []
    profiles: list[Path] = []

    def open_page(opened: Engine, profile: Path) -> StrawPage:
        profiles.append(profile)
        return StrawPage(opened.key, profile, log, failing.get(opened.key))

    return run_bench(chosen, open_page, PROMPTS, lambda text: None), log, profiles


def results_of(chosen: list[Engine], failing: dict[str, str] | None = None) -> dict[str, Any]:
    measured = run(chosen, failing or {})[0]
    return {"date": "today", "commit": "abc", "machine": MACHINE, "engines": measured}


# Arithmetic --------------------------------------------------------------------------------------


def test_speeds_of_tokens_that_come_in_batches() -> None:
    marks = [[200.0, 1], [300.0, 5], [700.0, 11]]
    assert speeds(marks, 128) == {"prefill": 640.0, "decode": 20.0, "first_token_s": 0.2}


def test_a_single_mark_has_no_decoding() -> None:
    assert speeds([[200.0, 1]], 100)["decode"] == 0.0


def test_agreement_ends_at_the_first_difference() -> None:
    assert agreement([1, 2, 9, 4], [1, 2, 3, 4]) == 2
    assert agreement([1, 2], [1, 2, 3]) == 2
    assert agreement([None, 2], [1, 2]) == 0  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0912, "0.09"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (15400.4, "15,400")],
)
def test_figures_are_short(value: float, text: str) -> None:
    assert round_figure(value) == text


def test_integer_zero_points_keep_the_weights() -> None:
    """A block with an integer zero point stays; others move by half a step at most."""
    generator = np.random.default_rng(0)
    nibbles = generator.integers(0, 16, (4, 3, 32), dtype=np.uint8)
    scale = np.array([0.5, 0.25, 0.125], np.float16)
    minimum = -scale * np.array([8, 3.4, 20])  # an integer, a fraction, outside of 0..15
    scales = np.broadcast_to(np.stack((scale, minimum), -1), (4, 3, 2)).astype(np.float16)
    flat = nibbles.reshape(4, -1)
    packed, steps, zeros = integer_zero_points(flat[:, 0::2] | flat[:, 1::2] << 4, scales)
    assert (packed.shape, steps.shape, zeros.shape) == ((4, 48), (4, 3), (4, 2))

    unpacked = np.stack((packed & 15, packed >> 4), -1).reshape(4, 3, 32).astype(np.float32)
    zero = np.stack((zeros & 15, zeros >> 4), -1).reshape(4, 4)[:, :3, None]
    got = (unpacked - zero) * steps[..., None]
    wanted = nibbles * scales[..., :1].astype(np.float32) + scales[..., 1:].astype(np.float32)
    off = np.abs(got - wanted).max((0, 2))
    assert off[0] == 0
    assert off[1] <= 0.25 / 2
    assert off[2] <= steps[0, 2]


# Rounds ------------------------------------------------------------------------------------------


def test_engines_take_turns_and_a_warm_start_has_the_cold_ones_profile() -> None:
    measured, log, profiles = run([engine("one"), engine("two")], {})
    generations = [entry for entry in log if entry.endswith("generate")]
    check_and_warm_up = ["one generate"] * 2 + ["two generate"] * 2
    assert generations == [*check_and_warm_up, *["one generate", "two generate"] * 2]
    assert profiles[0] == profiles[1] != profiles[2] == profiles[3]
    assert measured[0]["check"] == {"agreed": 3, "of": 3}
    assert measured[0]["start_up_s"] == {"cold": [2.0], "warm": [2.0]}
    assert measured[0]["runs"]["128"]["decode"] == [10.0, 10.0]
    assert measured[0]["runs"]["128"]["prefill"] == [1280.0, 1280.0]
    assert measured[0]["memory"]["renderer_bytes"] == 3000
    assert log.count("one close") == 3


def test_a_slow_peer_is_reported_and_the_others_go_on() -> None:
    measured, log, _ = run([engine("one"), engine("two", limit_s=7)], {"two": "generate"})
    assert measured[1]["faults"] == [
        "check of the output: not done after 7 s, with 1 of 3 tokens",
    ]
    assert measured[1]["runs"]["128"]["decode"] == []
    assert len(measured[0]["runs"]["128"]["decode"]) == 2
    assert log.count("two generate") == 1


def test_tokens_that_are_missing_are_a_fault() -> None:
    class Lazy(StrawPage):
        def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
            made = super().call(method, *arguments, limit_s=limit_s)
            return {**made, "ids": [1]} if method == "generate" else made

    measured = run_bench(
        [engine("one")],
        lambda e, profile: Lazy(e.key, profile, [], None),
        PROMPTS,
        lambda text: None,
    )
    assert measured[0]["faults"] == ["check of the output: it made 1 tokens instead of 3"]


def test_every_engine_is_asked_for_five_repeats_unless_it_says_why_not() -> None:
    for one in engines(software_adapter=True):
        assert one.notes or (one.start_ups >= 5 and all(r.repeats >= 5 for r in one.runs))
    assert [one.key for one in engines(True, quick=True)] == [OURS, "inpage-cpu", "wllama"]
    (chosen,) = engines(True, quick=True, only=["transformers-wasm"])
    assert chosen.key == "transformers-wasm"
    assert chosen.start_ups == 1


# The report --------------------------------------------------------------------------------------


def test_the_table_has_a_column_an_engine() -> None:
    results = results_of([engine(OURS), engine("two")], {"two": "generate"})
    results["engines"][0]["bytes_read_per_token"] = 200_000_000
    table = cells_of(results)
    assert table[0] == ["", "Inpage", "Two"]
    rows = {row[0]: row[1:] for row in table}
    assert rows["decode at context 128, tok/s"] == ["10.0 (10.0–10.0)", "did not finish"]
    assert rows["first token of 128, ms"] == ["100 (100–100)", "did not finish"]
    assert rows["opened → 128 tokens read, 64 written, warm, s"] == ["8.50", "–"]
    assert rows["fetched, cold"] == ["0.0 MB", "0.0 MB"]
    assert rows["of the adapter's read bandwidth"] == ["50%", "–"]
    assert rows["greedy ids as torch's"] == ["3 of 3", "–"]
    assert "prefill of 2000, tok/s" not in rows
    text = as_text(results)
    assert "parentheses, of 2 × 2 tokens at 128 context." in text
    assert "Two: 0 × 2 tokens at 128 context." in text
    assert "a CPU with 2 cores, Chromium 1.2, adapter acme soft (software), commit abc" in text
    assert "Two did not finish: check of the output: not done" in text
    assert (
        "Inpage, a token at context 128: 8.00 ms of the device, by its clock, of which linear 6.00 "
        "(75%), norm 2.00 (25%)." in text
    )
    assert "Inpage: 300 dispatches are submitted in 0.40 ms by one call, in 8.00 ms one by" in text
    assert (
        "Inpage: decode with one steering vector 9.90 tok/s, without one 11.0 (0.90x); views of a "
        "short text: lens 0.25 s." in text
    )
    assert results["engines"][0]["gpu_ops"][0]["ms"] == 6.0
    assert results["engines"][1]["gpu_ops"] is None


def test_ratios_are_ours_over_theirs() -> None:
    results = results_of([engine(OURS), engine("two")])
    results["engines"][1]["runs"]["128"]["decode"] = [4.0, 5.0, 90.0]
    assert ratios_of(results) == {"prefill 128": {"two": 1.0}, "decode 128": {"two": 2.0}}


def test_a_document_gets_the_table_between_its_markers(tmp_path: Path) -> None:
    document, results = tmp_path / "speed.md", results_of([engine(OURS)])
    document.write_text("before\n<!-- own -->\nold\n<!-- /own -->\nafter\n")
    put_between_marks(document, as_markdown(results), "own")
    put_between_marks(document, as_markdown(results), "own")  # again: nothing piles up
    wanted = f"before\n<!-- own -->\n{as_markdown(results)}\n<!-- /own -->\nafter\n"
    assert document.read_text() == wanted
    assert "| decode at context 128, tok/s | 10.0 (10.0–10.0) |" in wanted


def test_a_document_without_markers_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "speed.md"
    document.write_text("<!-- /own --> <!-- own -->")
    with pytest.raises(ValueError, match="lacks the lines <!-- own -->"):
        put_between_marks(document, "a table", "own")
    assert document.read_text() == "<!-- /own --> <!-- own -->"


def test_kinds_of_processors_have_results_of_their_own() -> None:
    systems = ("Linux x86_64", "Windows AMD64", "Linux aarch64", "Darwin arm64", "Linux riscv64")
    kinds = ["x86-64", "x86-64", "arm64", "arm64", "riscv64"]
    assert [machine.kind_of(system) for system in systems] == kinds
    assert machine.results_path(Path("bench")).stem == f"results-{machine.kind_of(platform())}"


def test_the_gpus_table_has_both_kinds_of_kernels_side_by_side(tmp_path: Path) -> None:
    shape = f"{OURS}-llama-3.1-8b"
    ours = (OURS, shape)
    keys = [f"{key}{end}" for key in ours for end in ("", *ENDINGS)]
    left_out = {f"{shape}{end}" for end in ENDINGS if end != WITHOUT}
    keys = [key for key in keys if key not in left_out] + ["transformers-webgpu"]
    results = results_of([engine(key) for key in keys], {f"{shape}{WITHOUT}": "generate"})
    results["machine"] = {**MACHINE, "adapter": {**ADAPTER, "arithmetic_per_s": 5.12e12}}
    for measured in results["engines"][:7]:
        measured |= {"bytes_read_per_token": 200_000_000, "arithmetic_per_token": 1_000_000_000}
    head, *rows = gpu_report.cells_of(results)
    halves = [f"{name} (`shader-f16`)" for name in ("in halves", "by matrix units")]
    columns = ["as chosen", "without subgroups", "polyfilled", *halves]
    assert head == ["", *columns, "transformers.js, WebGPU"]
    cells = {row[0]: row[1:] for row in rows}
    small, large = "SmolLM2-135M-Instruct", "llama-3.1-8b"
    assert cells[f"{small}: decode at context 128, tok/s"] == [*["10.0 (50%)"] * 5, "10.0"]
    assert cells[f"{small}: prefill of 128, tok/s"] == [*["1,280 (25%)"] * 5, "1,280"]
    assert cells[f"{large}: decode at context 128, tok/s"] == [
        "10.0 (50%)",
        "did not finish",
        *["–"] * 4,
    ]
    assert "of the 5.12 TFLOP/s" in gpu_report.as_text(results)
    readme = tmp_path / "README.md"
    readme.write_text("<!-- bench-gpu --><!-- /bench-gpu -->")
    put_between_marks(readme, gpu_report.as_markdown(results), gpu_report.MARK)
    first = "| llama-3.1-8b: first token of 128, ms | 100 | – | – | – | – | – |"
    assert first in readme.read_text()


def test_the_gpus_table_has_rows_of_proposals_and_long_contexts() -> None:
    """The README has the short form of the same results; what was not measured is a dash."""
    long = f"{OURS}-llama-3.2-1b-32k"
    keys = [OURS, f"{OURS}{POLYFILLED}", f"{OURS}{WITH_MATRICES}", long]
    results = results_of([engine(key) for key in keys])
    results["machine"] = {**MACHINE, "adapter": ADAPTER}
    results["engines"][3]["runs"]["32768"] = results["engines"][3]["runs"].pop("128")
    results["engines"][1]["speculation"] = results["engines"][3]["speculation"] = None
    head, *rows = gpu_report.cells_of(results)
    cells = {row[0]: row[1:] for row in rows}
    small, large = "SmolLM2-135M-Instruct", "llama-3.2-1b-32k"
    assert len(head) == 4
    assert cells[f"{small}: a call of 1 / 2 / 4 / 8 / 16 tokens, ms"] == [
        "1.00 / 2.00 / 4.00 / 8.00 / 16.0",
        "–",
        "1.00 / 2.00 / 4.00 / 8.00 / 16.0",
    ]
    gained = cells[f"{small}: a text that repeats itself, with proposals, tok/s"]
    assert gained == ["15.0 (1.50×)", "–", "15.0 (1.50×)"]
    assert cells[f"{large}: decode at context 32768, tok/s"] == ["10.0", "–", "–"]
    assert cells[f"{large}: prefill of 32688, tok/s"] == ["1,280", "–", "–"]
    assert cells[f"{large}: memory on the GPU"] == ["0.0 MB", "–", "–"]
    assert not any(row[0].startswith(f"{large}: a call") for row in rows)
    short = gpu_report.in_short(results).splitlines()
    assert short[0].count("without byte products") == short[0].count("by `shader-f16`") == 1
    assert short[2] == f"| {small} | 10.0 | 10.0 | 10.0 | 15.0 (1.50×) | 100 | 0.0 MB |"
    assert short[3] == f"| {large} | – | – | – | – | – | 0.0 MB |"
    assert "Medians of 2 × 2 tokens at 128, 2 × 2 tokens at 32768 context." in short[-1]


def test_the_gpus_table_is_of_shapes_that_the_folder_has() -> None:
    assert set(TABLE) <= {MODEL, *SHAPES}
    columns = [column(engine(OURS)).key for column in TABLE[MODEL]]
    assert columns == [f"{OURS}{end}" for end in (POLYFILLED, WITH_HALVES, WITH_MATRICES)]
    assert polyfilled(engine(OURS)).options["anew"]  # its features tell it from no other


def test_a_run_on_a_gpu_goes_on_where_it_was_cut_short(tmp_path: Path) -> None:
    results = results_of([engine(OURS), engine("two")], {"two": "generate"})
    path = tmp_path / "results.json"
    options = Namespace(results=path, go_on=True)
    assert kept_results(options) == {}
    path.write_text(json.dumps(results))
    assert list(kept_results(options)) == [OURS]
    assert kept_results(Namespace(results=path, go_on=False)) == {}


def test_columns_of_a_model_follow_each_other_and_peers_the_default_model() -> None:
    shape = f"{OURS}-llama-3.2-1b"
    keys = [OURS, shape, f"{OURS}{POLYFILLED}", f"{shape}{POLYFILLED}", "transformers-webgpu"]
    sorted_keys = [one.key for one in sort_by_model([engine(key) for key in keys])]
    assert sorted_keys == [keys[0], keys[2], keys[4], keys[1], keys[3]]


def test_long_runs_are_not_repeated_as_often() -> None:
    chosen = [engine(OURS, runs=(Run(128), Run(LONG_CONTEXT, repeats=2)))]
    (often,) = repeated(chosen, Namespace(repeats=7, start_ups=1, only=None))
    assert [run.repeats for run in often.runs] == [7, 2]
    asked = run(chosen, {})[1]
    assert asked.count(f"{OURS} generate") == 1 + 1 + 5 + 2  # checked, and one of them warmed up


def test_the_gpus_report_says_which_kernels_ran() -> None:
    results = results_of([engine(OURS)])
    results["machine"] = {**MACHINE, "adapter": ADAPTER}
    measured = [{"kernels": "floats", "one_token_us": 61.04, "many_tokens_us": 182.6}]
    by_floats = {"one_token": "f32", "many_tokens": "bytes", "measured": measured}
    results["engines"][0]["facts"] = {
        "kernels": {"name": "memory", "chosen": "measured", **by_floats}
    }
    assert (
        "kernels memory (measured), one token by f32, many by bytes; a layer takes µs for 1 / 256 "
        "tokens by floats 61.0 / 183." in gpu_report.as_text(results)
    )


def test_the_documents_have_a_place_for_their_tables() -> None:
    speed, readme = ((ROOT / path).read_text() for path in ("docs/speed.md", "README.md"))
    tables = [f"bench-{processor}" for processor in ("x86-64", "arm64")]
    in_speed = [(speed, mark) for mark in (*tables, gpu_report.MARK)]
    for text, mark in (*in_speed, (readme, gpu_report.MARK)):
        assert text.count(f"<!-- {mark} -->") == text.count(f"<!-- /{mark} -->") == 1


def test_the_readme_has_the_short_form_of_the_last_run_on_a_gpu() -> None:
    results = json.loads((ROOT / "bench" / "results-gpu.json").read_text())
    short = gpu_report.in_short(results)
    assert f"<!-- bench-gpu -->\n{short}\n<!-- /bench-gpu -->" in (ROOT / "README.md").read_text()
    measured = {engine["key"]: engine for engine in results["engines"]}
    decode = round_figure(
        statistics.median(measured["inpage-llama-3.1-8b-q4_k_m"]["runs"]["128"]["decode"])
    )
    (row,) = (line for line in short.splitlines() if line.startswith("| llama-3.1-8b-q4_k_m |"))
    assert row.split(" | ")[1] == decode


# Prompts and pages -------------------------------------------------------------------------------


def test_prompts_have_their_length_and_begin_differently() -> None:
    tokenizer = Tokenizer.from_json(byte_tokenizer())
    letters = tokenizer.encode("aabcdefghi")
    taken: set[int] = set()
    prompts = cut(tokenizer, letters, 25, taken)
    assert [prompt["ids"][0] for prompt in prompts] == letters[1 : 1 + VARIANTS]
    assert all(len(prompt["ids"]) == 25 for prompt in prompts)
    assert prompts[1]["text"] == "bcdefghiaa" * 2 + "bcdef"
    with pytest.raises(UserError, match="does not give 8 prompts of 25 tokens"):
        cut(tokenizer, letters[:3], 25, set())
    # Nor does one of another length begin as one of these.
    others = cut(tokenizer, tokenizer.encode("abcdefghijklmnopqr"), 40, taken)
    assert not {each["ids"][0] for each in others} & {each["ids"][0] for each in prompts}


def test_our_page_is_the_products_with_one_script_more() -> None:
    page = (ROOT / "web" / "index.html").read_text()
    added = own_page(page).decode()
    line = '  <script type="module" src="bench/inpage.js"></script>\n'
    assert added.count(line) == 1
    assert added.replace(line, "") == page


def test_a_page_that_nobody_drives_fetches_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "file.wasm").write_bytes(b"12345")
    server = Server(tmp_path)
    mailbox = server.mailboxes["one"] = Mailbox()
    url = f"{server.address}bench-task?remote&page=one"

    def page() -> None:
        done: dict[str, Any] = {}
        for _ in range(2):
            with urllib.request.urlopen(url, data=json.dumps(done).encode()) as reply:
                task = json.load(reply)
            done = {"result": task["args"][0] * 2}

    thread = threading.Thread(target=page)
    thread.start()
    mailbox.tasks.put({"method": "double", "args": [21]})
    mailbox.tasks.put({"method": "double", "args": [0]})
    assert mailbox.answers.get(timeout=30) == {"result": 42}
    thread.join()
    with urllib.request.urlopen(f"{server.address}file.wasm") as reply:
        assert reply.headers["Content-Type"] == "application/wasm"
        assert reply.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert reply.read() == b"12345"
    assert server.sent_bytes == 5
    server.close()


def test_a_page_that_crashed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crashing(remote.Browser):
        def start(
            self, url: str, profile: Path, flags: tuple[str, ...] = ()
        ) -> "subprocess.Popen[bytes]":
            (profile / "browser.log").write_text("[1:FATAL:fonts.cpp(163)] Not implemented.\n")
            return subprocess.Popen(["true"])

    monkeypatch.setattr(remote, "POLL_S", 0.01)
    server = remote.Server(tmp_path)
    page = remote.RemotePage(server, Crashing(tmp_path / "browser", []), PROBE, tmp_path)
    with pytest.raises(PageFault, match=r"the page crashed: .*Not implemented"):
        page.call("open", limit_s=600)
    page.close()
    server.close()
