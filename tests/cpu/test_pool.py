"""The pool of threads that replays plans: natively and in the page, one thread and several."""

import asyncio
import os
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import Browser, Route

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import AbortedError, GpuDeviceLostError
from py_runtime.cpu import native
from py_runtime.cpu.native import NativeMachine, request_cpu
from tests.cpu import in_runtime
from tests.golden import Case, check
from tests.ops.test_ops import CASES as OP_CASES
from tests.runners import PageRunner, Runner, started_page, wait

pytestmark = [pytest.mark.built, pytest.mark.torch]

CASES = in_runtime.__name__
SEVERAL = 3  # threads, be there as many cores or not
OPEN = """
from py_runtime.cpu.page import request_cpu
{name} = await request_cpu({threads})
{name}.threads
"""
# One of each family of kernels.
OPS = (
    "unary functions",
    "linear_q4gsw groups of 32 N 37 K 64 bias",
    "sdpa_with_kv_cache 9/3 heads of 64",
    "rms_norm width 576 weight",
    "embedding_q8_0 V 33 E 576 i64",
    "argmax of a vocabulary",
    "permute, flip and repeat",
)


class CpuPage(PageRunner):
    """A page whose cases run on a CPU device of their own."""

    def __init__(self, in_page: PageRunner, threads: int) -> None:
        self.device = f"cpu_of_{threads}"
        super().__init__(in_page.page, self.device)
        self.threads = self.python(OPEN.format(name=self.device, threads=threads))

    def close(self) -> None:
        self.python(f"{self.device}.destroy()")


@pytest.fixture(scope="module")
def page_of_one(in_page: PageRunner) -> Iterator[CpuPage]:
    runner = CpuPage(in_page, 1)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def page_of_several(in_page: PageRunner) -> Iterator[CpuPage]:
    runner = CpuPage(in_page, SEVERAL)
    yield runner
    runner.close()


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("page_of_one", marks=pytest.mark.browser),
        pytest.param("page_of_several", marks=pytest.mark.browser),
    ]
)
def pool(request: pytest.FixtureRequest) -> Runner:
    found: Runner = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["page_of_one", "page_of_several"])
def page_pool(request: pytest.FixtureRequest) -> CpuPage:
    found: CpuPage = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def doomed(in_page: PageRunner) -> CpuPage:
    """Open a device that a test may ruin."""
    return CpuPage(in_page, SEVERAL)


@pytest.mark.parametrize("count", [1, 1000, in_runtime.LARGE + 1])
def test_all_elements_are_computed_whoever_computes_them(pool: Runner, count: int) -> None:
    values = np.linspace(-3, 3, count, dtype=np.float32)
    np.testing.assert_allclose(pool.run(CASES, "computed", values=values), np.exp(values), 1e-5)


@pytest.mark.browser
@pytest.mark.parametrize(
    "case", [case for case in OP_CASES if case.name in OPS], ids=lambda case: case.name
)
def test_ops_equal_torch_in_the_page(case: Case, page_pool: CpuPage) -> None:
    check(case, page_pool)


def test_tasks_are_done_in_their_order(pool: Runner) -> None:
    np.testing.assert_allclose(pool.run(CASES, "in_order"), np.exp([0, 1, 2]), 1e-5)


@pytest.mark.browser
def test_replaying_300_steps_is_one_call(page_of_several: CpuPage) -> None:
    assert page_of_several.run(CASES, "calls_of_a_submit") == 1


def test_the_event_loop_turns_while_a_plan_is_replayed(pool: Runner) -> None:
    assert pool.run(CASES, "turns_meanwhile") > 3
    turns, copied = pool.run(CASES, "copies_meanwhile")
    assert turns > 3
    assert copied == 7


def test_memory_that_is_taken_again_is_zero_whatever_is_still_computed(pool: Runner) -> None:
    assert pool.run(CASES, "memory_again") == {"is_same": True, "before": 1.0, "after": 0.0}


def test_memory_grows_beside_what_is_in_it(pool: Runner) -> None:
    large = in_runtime.LARGE
    assert pool.run(CASES, "growth") == [large, large, 16 << 20]


def test_steps_are_timed(pool: Runner) -> None:
    launched, skipped = pool.run(CASES, "times")
    assert launched > 0
    assert skipped == 0


@pytest.mark.browser
def test_stop_is_heard_while_a_plan_is_replayed(in_page: PageRunner, doomed: CpuPage) -> None:
    doomed.run(CASES, "computed", values=np.zeros(1, np.float32))  # ships the module
    code = f"""
from {CASES} import *
exponential = await Exponential.create({doomed.device}, LARGE)
await exponential.start(0.0, repeat=FOR_EVER)
"""
    stopped = """code => {
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 200);
        return inpage.python(code, { signal: controller.signal }).catch(({ code: kind }) => kind);
    }"""
    assert in_page.page.evaluate(stopped, code) == "aborted"
    doomed.close()


@pytest.mark.browser
def test_a_worker_that_ends_between_launches_is_not_missed(doomed: CpuPage) -> None:
    np.testing.assert_allclose(doomed.run(CASES, "without_a_worker"), np.exp([0, 1]), 1e-5)
    doomed.close()


def test_stop_is_heard_within_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed during the few turns of the event loop that stopping takes."""
    monkeypatch.setattr(native, "SLICE_SECONDS", 0.001)
    slices, pressed = 0, 5
    do_jobs = NativeMachine._do_jobs
    cancel = CancelToken()

    def do_and_press(machine: NativeMachine) -> None:
        nonlocal slices
        do_jobs(machine)
        slices += 1
        if slices == pressed:
            asyncio.get_running_loop().call_soon(cancel.cancel)

    async def compute() -> None:
        exponential = await in_runtime.Exponential.create(await request_cpu(2), in_runtime.LARGE)
        monkeypatch.setattr(NativeMachine, "_do_jobs", do_and_press)
        await exponential.start(0.0, repeat=in_runtime.FOR_EVER)

    with pytest.raises(AbortedError):
        wait(until_cancelled(compute(), cancel))
    assert pressed <= slices <= pressed + 1


def test_what_an_ended_loop_has_left_is_done_before_anything_else() -> None:
    async def begin() -> in_runtime.Exponential:
        exponential = await in_runtime.Exponential.create(await request_cpu(2), in_runtime.LARGE)
        exponential.start(0.0, repeat=50)
        return exponential

    exponential = wait(begin())

    async def read() -> np.ndarray:
        return await exponential.device.read_buffer(exponential.y, 4)

    assert wait(read()).view(np.float32)[0] == 1


@pytest.mark.browser
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("destroyed", "was destroyed"),
        ("a thread without a stack", "a thread of the CPU's kernels has failed"),
    ],
)
def test_a_device_that_is_gone_says_so(doomed: CpuPage, harm: str, words: str) -> None:
    for said in doomed.run(CASES, "faults_after", harm=harm):
        assert words in said


@pytest.mark.browser
def test_a_device_that_nobody_has_any_more_gives_its_memory_back(in_page: PageRunner) -> None:
    found = in_page.python(
        """
import gc
from py_runtime.cpu import page
gone = await page.request_cpu(2)
gc.collect()
with_it = page._cpu.machines.size
del gone
gc.collect()
with_it - page._cpu.machines.size
"""
    )
    assert found == 1


@pytest.mark.browser
def test_a_page_that_is_not_isolated_computes_on_one_thread(
    shared_browser: Browser, site_url: str
) -> None:
    def without_isolation(route: Route) -> None:
        response = route.fetch()
        left = {k: v for k, v in response.headers.items() if not k.startswith("cross-origin-")}
        route.fulfill(response=response, headers=left)

    context = shared_browser.new_context()
    # As where the service worker could not help either.
    context.add_init_script("sessionStorage.setItem('inpage-isolation-reloaded', Date.now())")
    context.route(site_url, without_isolation)
    with started_page(context, site_url) as in_page:
        assert in_page.page.evaluate("crossOriginIsolated") is False
        runner = CpuPage(in_page, SEVERAL)
        assert runner.threads == 1
        values = np.linspace(-3, 3, 100, dtype=np.float32)
        np.testing.assert_allclose(
            runner.run(CASES, "computed", values=values), np.exp(values), 1e-5
        )
    context.close()


CORES = [(1, 1), (2, 2), (3, 2), (8, 7)]  # of a machine, and the threads that it computes with


@pytest.mark.parametrize(("cores", "threads"), CORES)
def test_a_core_is_left_to_others_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert native.default_threads() == threads
    assert wait(request_cpu()).threads == threads


@pytest.mark.browser
def test_a_page_leaves_a_core_too_and_starts_few_workers(in_page: PageRunner) -> None:
    code = """
import js
from pyodide.ffi import to_js
from py_runtime.cpu.page import default_threads
own, found = js.navigator.hardwareConcurrency, []
for cores in {cores}:
    known = to_js({{"value": cores, "configurable": True}}, dict_converter=js.Object.fromEntries)
    js.Object.defineProperty(js.navigator, "hardwareConcurrency", known)
    found.append(default_threads())
js.Reflect.deleteProperty(js.navigator, "hardwareConcurrency")
assert js.navigator.hardwareConcurrency == own
found
"""
    cores = [cores for cores, _ in CORES]
    found = in_page.python(code.format(cores=[*cores, 64]))
    assert found == [*(threads for _, threads in CORES), 16]


def test_threads_that_never_start_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeMachine, "start_thread", lambda *_: None)
    values = np.linspace(-3, 3, in_runtime.LARGE, dtype=np.float32)

    async def compute() -> np.ndarray:
        return await in_runtime.computed(await request_cpu(SEVERAL), values)

    np.testing.assert_allclose(wait(compute()), np.exp(values), 1e-5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_with_a_chunk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock runs fast: who waits for that thread is out of patience after a moment."""
    seconds = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
    monkeypatch.setattr(native, "time", clock)
    start_thread = NativeMachine.start_thread

    def start_without_stack(machine: NativeMachine, number: int, stack: int) -> None:
        start_thread(machine, number, in_runtime.NO_STACK)

    monkeypatch.setattr(NativeMachine, "start_thread", start_without_stack)

    async def compute() -> None:
        exponential = await in_runtime.Exponential.create(await request_cpu(2), in_runtime.LARGE)
        await exponential.start(0.0, repeat=1000)

    with pytest.raises(GpuDeviceLostError, match="has ended while it computed"):
        wait(compute())
