"""The life of a graph: resize, rollback, SymInts, uploads, memory. Numbers are tested elsewhere."""

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.errors import GraphError, InpageError, InputError
from py_runtime.gpu import Device
from py_runtime.graph.resize import MAX_KEPT
from py_runtime.ops.registry import REGISTRY, register
from py_runtime.program.writer import ProgramWriter, Ref
from tests.graph.engine_graphs import WIDTH, decoder_like, load, norm_graph, norm_of, rows, run
from tests.runners import NativeRunner


@pytest.fixture(scope="module")
def device(native: NativeRunner) -> Device:
    return native.device


# Bad input ------------------------------------------------------------------------------------

BAD_INPUTS = {
    "no inputs": ((), "the graph takes 1 inputs, got 0"),
    "rank": (
        (np.zeros((3, WIDTH), np.float32),),
        "value 0 'x' has rank 3, got dims [3, 8] of rank 2",
    ),
    "zero rows": (
        (np.zeros((1, 0, WIDTH), np.float32),),
        "value 0 'x': dim 1 is 0; empty tensors cannot be computed on",
    ),
    "too many rows": (
        (np.zeros((1, 17, WIDTH), np.float32),),
        "value 0 'x': dim 1 is 17, above its maximum 16 (dims [1, 17, 8], at most [1, 16, 8])",
    ),
    "fixed dim": (
        (np.zeros((1, 4, 7), np.float32),),
        "input 0 (value 0 'x'): dim 2 is 7, but it is fixed at 8",
    ),
    "dtype": (
        (np.zeros((1, 4, WIDTH), np.float64),),
        "input 0 (value 0 'x') takes float32, got float64",
    ),
    "not an array": (("words",), "input 0 (value 0 'x') takes float32, got <U5"),
}


@pytest.mark.parametrize("fault", BAD_INPUTS)
def test_bad_input_is_named_and_leaves_the_graph_as_it_was(device: Device, fault: str) -> None:
    inputs, text = BAD_INPUTS[fault]
    graph = load(device, norm_graph(chain=2))
    good = run(graph, rows(5))[0]
    with pytest.raises(InputError) as caught:
        run(graph, *inputs)
    assert str(caught.value) == text
    assert graph.live_dims(0) == (1, 5, WIDTH)
    np.testing.assert_array_equal(run(graph, rows(5))[0], good)
    assert graph.resize_stats.ops_resized == 0, "the retry found everything in place"
    graph.unload()


def test_only_our_errors_escape(device: Device) -> None:
    graph = load(device, norm_graph())
    for given in (None, object(), [], [[1, 2], [3]], {"x": 1}, np.array("x"), 3 + 4j, b"bytes"):
        with pytest.raises(InpageError):
            run(graph, given)
    np.testing.assert_allclose((run(graph, rows(2))[0] ** 2).mean(-1), 1, atol=1e-3)
    graph.unload()


def test_int64_is_narrowed_after_a_range_check(device: Device) -> None:
    writer = ProgramWriter()
    ids = writer.input("ids", (1, 4), I64, dynamic=(1,))
    out = writer.tensor((1, 4), I64)
    writer.op("aten.add.Tensor", ids, ids, 1, out)
    writer.output(out)
    graph = load(device, writer)
    (doubled,) = run(graph, np.array([[1, -5]]))
    assert doubled.dtype == np.int64
    np.testing.assert_array_equal(doubled, [[2, -10]])
    for outside in (2**31, -(2**31) - 1):
        with pytest.raises(InputError, match=f"holds {outside}, which does not fit"):
            run(graph, np.array([[0, outside]]))
    graph.unload()


# Resize ---------------------------------------------------------------------------------------


def test_every_op_of_a_chain_is_resized_once(device: Device) -> None:
    graph = load(device, norm_graph(chain=5))
    run(graph, rows(16))
    assert graph.resize_stats.ops_resized == 0, "the first call at the maximum finds all in place"
    run(graph, rows(3))
    assert graph.resize_stats.ops_resized == 5
    run(graph, rows(3, seed=1))
    assert graph.resize_stats.ops_resized == 0
    graph.unload()


def test_shapes_that_come_again_cost_no_op_anything(device: Device) -> None:
    graph = load(device, norm_graph(chain=3))
    wanted = {}
    for count in range(1, MAX_KEPT + 2):
        (wanted[count],) = run(graph, rows(count))
        assert graph.resize_stats.ops_resized == 3, "shapes that were never there"
    for count, resized in ((2, 0), (MAX_KEPT + 1, 0), (2, 0), (1, 3)):  # the oldest is forgotten
        np.testing.assert_array_equal(run(graph, rows(count))[0], wanted[count])
        assert graph.resize_stats.ops_resized == resized, count
    graph.unload()


def test_two_triggers_resize_an_op_once(device: Device) -> None:
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    y = writer.input("y", (1, 16, WIDTH), F32, dynamic=(1,))
    out = writer.tensor((1, 16, WIDTH), F32)
    writer.op("aten.add.Tensor", x, y, 1, out)
    writer.output(out)
    graph = load(device, writer)
    run(graph, rows(4), rows(4))
    assert graph.resize_stats.ops_resized == 1
    graph.unload()


def test_build_and_resize_agree_to_the_byte(device: Device) -> None:
    """A resize back to the maximum computes what load computed there."""
    writer, _ = decoder_like()
    graph = load(device, writer)
    built = graph._counts.copy(), graph.arena.mirror.copy()
    x = np.random.default_rng(0).standard_normal((1, 48, WIDTH), np.float32)
    run(graph, x[:, :1], np.array([50]))
    assert not np.array_equal(graph._counts, built[0])
    run(graph, x, np.array([0]))
    np.testing.assert_array_equal(graph._counts, built[0])
    active = graph._counts[:, 0] > 0
    assert active.any()
    for step, used in zip(graph._builder.steps, active, strict=True):
        if used and hasattr(step, "launch"):
            params = slice(step.launch.offset, step.launch.offset + step.launch.layout.struct.size)
            np.testing.assert_array_equal(graph.arena.mirror[params], built[1][params])
    graph.unload()


def test_stale_s_never_meets_a_new_position(device: Device) -> None:
    """U1: context 64, prefill 48 at 0, then decode 1 at 48: 48 + 48 would not fit."""
    writer, pos = decoder_like()
    graph = load(device, writer)
    x = np.random.default_rng(0).standard_normal((1, 48, WIDTH), np.float32)
    run(graph, x, np.array([0]))
    for position in range(48, 64):
        (out,) = run(graph, x[:, :1], np.array([position]))
        assert out.shape == (1, 1, 2, 4)
        assert graph.read_symint(pos) == position
    with pytest.raises(InputError, match="64"):
        run(graph, x[:, :1], np.array([64]))
    assert graph.read_symint(pos) == 63, "a refused position is not kept"
    run(graph, x[:, :1], np.array([63]))
    run(graph, x, np.array([0]))
    graph.unload()


def test_sym_size_of_an_intermediate_is_this_calls(device: Device) -> None:
    """U2, U3: a dim that an op just computed feeds a SymInt, which feeds a view, in one call."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    keep = writer.symint_input("keep")
    part = writer.tensor((1, 16, WIDTH), F32)
    writer.op("aten.slice_copy.Tensor", x, 1, 0, keep, 1, part)
    length, doubled = writer.symint("length"), writer.symint("doubled")
    writer.op("sym_size.int", part, 1, length)
    writer.op("mul", length, 2, doubled)
    halves = writer.tensor((1, 32, WIDTH // 2), F32)
    writer.op("aten.view_copy.default", part, [1, doubled, WIDTH // 2], halves)
    writer.output(halves, length)
    graph = load(device, writer)
    data = rows(16)
    for count in (16, 5, 1, 9, 16):
        out, size = run(graph, data, count)
        np.testing.assert_array_equal(out, data[:, :count].reshape(1, 2 * count, 4))
        assert size == count
    graph.unload()


def test_decode_steps_touch_only_what_reads_the_position(device: Device) -> None:
    writer, _ = decoder_like()
    graph = load(device, writer)
    x = rows(1)
    run(graph, x, np.array([0]))
    run(graph, x, np.array([1]))
    assert graph.resize_stats.ops_resized == 1, "attention alone reads the position"
    graph.unload()


def test_a_graph_whose_placeholder_fits_nothing_settles_at_its_first_call(device: Device) -> None:
    """The SymInt is 0 at load and the slice empty: no reason to refuse the graph."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    end = writer.symint_input("end")
    out = writer.tensor((1, 16, WIDTH), F32)
    writer.op("aten.slice_copy.Tensor", x, 1, 0, end, 1, out)
    writer.output(out)
    graph = load(device, writer)
    with pytest.raises(InputError):
        run(graph, rows(4), 0)
    np.testing.assert_array_equal(run(graph, rows(4), 2)[0], rows(4)[:, :2])
    graph.unload()


# Uploads and outputs --------------------------------------------------------------------------


def test_uploads_are_live_bytes_and_one_uniform_write(device: Device) -> None:
    graph = load(device, norm_graph(chain=4))
    run(graph, rows(16))
    device.counters.reset()
    run(graph, rows(2))
    assert device.counters.writes == 2, "the input, and all changed parameters together"
    assert device.counters.bytes_read == 2 * WIDTH * 4
    device.counters.reset()
    run(graph, rows(2, seed=3))
    assert (device.counters.writes, device.counters.bytes_written) == (1, 2 * WIDTH * 4)
    graph.unload()


def test_only_wanted_outputs_are_computed_and_read(device: Device) -> None:
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    first = norm_of(writer, x)
    second = norm_of(writer, first)
    third = norm_of(writer, x)
    writer.output(second, first, third)
    graph = load(device, writer)
    everything = run(graph, rows(4))
    device.counters.reset()
    picked = run(graph, rows(4), outputs=[1])
    np.testing.assert_array_equal(picked[0], everything[1])
    assert (device.counters.reads, device.counters.dispatches) == (1, 1)
    device.counters.reset()
    assert run(graph, rows(4), outputs=[]) == []
    assert (device.counters.reads, device.counters.dispatches) == (0, 0)
    twice = run(graph, rows(4), outputs=[2, 0])
    np.testing.assert_array_equal(twice[1], everything[0])
    with pytest.raises(InputError, match="output 3 was asked for; the graph has 0 to 2"):
        run(graph, rows(4), outputs=[3])
    graph.unload()


def test_in_place_writes_happen_even_when_nothing_is_read(device: Device) -> None:
    writer, _ = decoder_like()
    graph, fresh = load(device, writer), load(device, writer)
    data = rows(8)
    run(graph, data[:, :7], np.array([0]), outputs=[])
    (out,) = run(graph, data[:, 7:], np.array([7]))
    (whole,) = run(fresh, data, np.array([0]))
    np.testing.assert_allclose(out[0, 0], whole[0, 7], rtol=1e-5)
    graph.unload()
    fresh.unload()


# Memory ---------------------------------------------------------------------------------------


def test_intermediates_share_memory_without_overlap(device: Device) -> None:
    graph = load(device, norm_graph(chain=10))
    one = 16 * WIDTH * 4
    assert graph.memory.unshared == 10 * one
    assert graph.memory.intermediates == 2 * one, "a chain needs two buffers to go back and forth"
    weight, uniforms = WIDTH * 4, graph.memory.uniforms
    assert graph.memory.peak == one + 2 * one + weight + uniforms
    graph.unload()


def test_views_cost_nothing(device: Device) -> None:
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    length = writer.symint("length")
    writer.op("sym_size.int", x, 1, length)
    view, squeezed = writer.tensor((16, 1, WIDTH), F32), writer.tensor((16, WIDTH), F32)
    writer.op("aten.view_copy.default", x, [length, 1, WIDTH], view)
    writer.op("aten.squeeze_copy.dims", view, [1], squeezed)
    writer.output(squeezed)
    graph = load(device, writer)
    device.counters.reset()
    np.testing.assert_array_equal(run(graph, rows(5))[0], rows(5)[0])
    assert device.counters.dispatches == 0
    assert graph.buffer(squeezed.id) is graph.buffer(x.id)
    graph.unload()


def test_a_clone_of_state_is_no_alias(device: Device) -> None:
    """The clone keeps what the cache held before the op after it writes the cache."""
    writer = ProgramWriter()
    value = writer.input("value", (1, 1, 1, 4), F32)
    cache = writer.state("cache", (1, 2, 1, 4), F32)
    before, after = writer.tensor((1, 2, 1, 4), F32), writer.tensor((1, 2, 1, 4), F32)
    writer.op("aten.clone.default", cache, None, before)
    writer.op("update_cache.default", value, cache, 0, after)
    writer.output(before, after)
    graph = load(device, writer)
    ones, twos = np.ones((1, 1, 1, 4), np.float32), np.full((1, 1, 1, 4), 2, np.float32)
    before_one, after_one = run(graph, ones)
    assert (before_one.max(), after_one.max()) == (0, 1)
    before_two, after_two = run(graph, twos)
    assert (before_two.max(), after_two.max()) == (1, 2)
    graph.unload()


def test_unloading_gives_everything_back(device: Device) -> None:
    before = device.counters.buffers_alive, device.counters.buffer_bytes_alive
    graph = load(device, norm_graph(chain=3))
    assert device.counters.buffers_alive > before[0]
    graph.unload()
    assert (device.counters.buffers_alive, device.counters.buffer_bytes_alive) == before
    with pytest.raises(GraphError, match="was unloaded"):
        run(graph, rows(1))


def test_constants_with_one_name_share_a_buffer(device: Device) -> None:
    graph = load(device, norm_graph(chain=3))
    weights = [
        value_id
        for value_id, value in enumerate(graph.program.values)
        if getattr(value, "constant", None) == "weight"
    ]
    assert len(weights) == 3
    assert len({graph.buffer(value_id) for value_id in weights}) == 1
    graph.unload()


# The registry ---------------------------------------------------------------------------------


def test_a_name_is_registered_once() -> None:
    with pytest.raises(GraphError, match="op 'add' is registered twice"):
        register("add", args="a b out")(REGISTRY["et_vk.rms_norm.default"].op)


def test_an_op_that_cannot_resize_is_refused_on_a_dynamic_graph(device: Device) -> None:
    class Frozen(REGISTRY["et_vk.rms_norm.default"].op):  # type: ignore[misc]
        pass

    register("test.frozen", args="x weight eps out", resizes=False)(Frozen)
    try:
        writer = norm_graph()
        second = writer.tensor((1, 16, WIDTH), F32)
        weight = writer.constant("weight", np.ones(WIDTH, np.float32))
        writer.op("test.frozen", Ref(1), weight, 1e-5, second)
        with pytest.raises(GraphError, match=r"op 1 \(test.frozen\) cannot resize"):
            load(device, writer)
        fixed = ProgramWriter()
        x = fixed.input("x", (1, 16, WIDTH), F32)
        out = fixed.tensor((1, 16, WIDTH), F32)
        weight = fixed.constant("weight", np.ones(WIDTH, np.float32))
        fixed.op("test.frozen", x, weight, 1e-5, out)
        fixed.output(out)
        load(device, fixed).unload()
    finally:
        del REGISTRY["test.frozen"]
