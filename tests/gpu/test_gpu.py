"""The device interface: the same cases natively and in the page."""

import numpy as np
import pytest
from playwright.sync_api import Page, Worker

from tests.runners import NativeRunner, PageRunner, Runner

CASES = "tests.gpu.gpu_cases"
# As Chromium describes what an adapter's matrix units multiply: attributes stand in prototypes.
OFFER_MATRICES = """
(side) => {
  const config = {
    get componentType() { return "f16"; },
    get resultComponentType() { return "f32"; },
    get M() { return side; },
    get N() { return side; },
    get K() { return side; },
  };
  const listed = { get: () => [Object.create(config)], configurable: true, enumerable: true };
  Object.defineProperty(GPUAdapterInfo.prototype, "subgroupMatrixConfigs", listed);
}
"""
NO_LONGER = "() => { delete GPUAdapterInfo.prototype.subgroupMatrixConfigs; }"
FaultTexts = dict[str, dict[str, list[str]]]  # by runner and fault: its kind and its words


def test_bytes_survive_the_trip(runner: Runner) -> None:
    result = runner.run(CASES, "upload_and_read_back")
    np.testing.assert_array_equal(result["whole"], np.arange(16, dtype=np.float32))
    np.testing.assert_array_equal(result["part"], [1, 7, 8])
    np.testing.assert_array_equal(result["odd"], [1, 2, 3, 4, 5])


def test_a_plan_replays_its_steps_in_order(runner: Runner) -> None:
    result = runner.run(CASES, "replay", steps=300)
    np.testing.assert_array_equal(result["all steps"], np.full(64, 300))
    np.testing.assert_array_equal(result["first two"], [300, 300])
    np.testing.assert_array_equal(result["one step"], np.full(64, 1))
    assert (result["submits"], result["dispatches"]) == (2, 301)
    assert (result["writes"], result["reads"]) == (3, 3)


def test_a_cancelled_read_disturbs_nobody(runner: Runner) -> None:
    last = runner.run(CASES, "cancelled_reads")
    np.testing.assert_array_equal(last, np.arange((1 << 18) - 4, 1 << 18))


def test_equal_specs_share_a_pipeline(runner: Runner) -> None:
    assert runner.run(CASES, "same_spec_same_pipeline") is True


@pytest.mark.browser
@pytest.mark.parametrize(("side", "has"), [(16, True), (8, False)])
def test_matrix_units_are_seen_where_the_browser_lists_them(
    side: int, has: bool, in_page: PageRunner
) -> None:
    realms: list[Page | Worker] = [in_page.page, *in_page.page.workers]  # Python's is one of them
    for realm in realms:
        realm.evaluate(OFFER_MATRICES, side)
    try:
        assert in_page.run(CASES, "has_matrix_units") is has
    finally:
        for realm in realms:
            realm.evaluate(NO_LONGER)
    assert in_page.run(CASES, "has_matrix_units") is False


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("no label", "GpuValidationError", ["every GPU buffer needs a label"]),
        ("too large", "GpuValidationError", ["'huge'", "this device allows 1 to"]),
        ("bad usage", "GpuValidationError", ["'odd one'", "64 bytes"]),
        ("shader", "ShaderError", ["'broken'", "line 3", "fn main() { let x = missing; }"]),
        ("entry point", "GpuValidationError", ["'no main'"]),
        ("bind group", "GpuValidationError", ["'wrong group'"]),
        ("overflow", "GpuValidationError", ["'small'", "32 bytes at offset 0", "16 bytes"]),
        ("read past the end", "GpuValidationError", ["read-back of 'small'", "32 bytes"]),
    ],
)
def test_faults_are_named(
    fault: str, kind: str, words: list[str], runner: Runner, fault_texts: FaultTexts
) -> None:
    if runner.name not in fault_texts:
        fault_texts[runner.name] = runner.run(CASES, "error_texts")
    got_kind, text = fault_texts[runner.name][fault]
    assert got_kind == kind, text
    for word in words:
        assert word in text


@pytest.fixture(scope="module")
def fault_texts() -> FaultTexts:
    """Provoke all faults once per runner."""
    return {}


def test_out_of_memory_leaves_nothing_behind(runner: Runner) -> None:
    result = runner.run(CASES, "out_of_memory")
    assert result["text"].startswith("buffer 'huge ")
    assert result["kept"] == 0
    np.testing.assert_array_equal(result["works"], np.arange(16, dtype=np.float32))


def test_shader_errors_carry_name_and_line(runner: Runner) -> None:
    shader, line, text = runner.run(CASES, "shader_error_fields")
    assert (shader, line) == ("fields", 3)
    assert "let x = missing;" in text


def test_a_destroyed_device_says_so(native: NativeRunner) -> None:
    for text in native.run(CASES, "destroyed_device"):
        assert text.startswith("GpuDeviceLostError:")
        assert "destroyed" in text


ONE_CALL = """
from tests.gpu.gpu_cases import *
from py_runtime.gpu.page import bridge

STEPS = 300
data, params = await device.create_buffers(
    [BufferSpec("data", 256), BufferSpec("params", 16, UNIFORM_USAGE)]
)
(pipeline,) = await device.create_compute_pipelines([PipelineSpec("steps", SCALE_AND_ADD)])
(group,) = await device.create_bind_groups(
    [BindGroupSpec("steps", pipeline, (Binding(data), Binding(params)))]
)
plan = device.create_plan("steps", [Dispatch("steps", pipeline, group)] * STEPS)
calls, dispatches = bridge.calls, device.counters.dispatches
device.submit(plan, np.ones((STEPS, 3), np.uint32))
made = {"calls": bridge.calls - calls, "dispatches": device.counters.dispatches - dispatches}
await device.read_buffer(data, 4)
device.release([group, plan])
device.destroy_buffers([data, params])
made
"""


@pytest.mark.browser
def test_replaying_300_dispatches_is_one_call(in_page: PageRunner) -> None:
    """The cost of the call is a figure of `make bench`."""
    in_page.run(CASES, "same_spec_same_pipeline")  # ships the module
    assert in_page.python(ONE_CALL) == {"calls": 1, "dispatches": 300}
