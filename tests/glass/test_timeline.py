"""The timeline: every dispatch once, with what it moves, and a trace that opens elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.glass.places import places_of
from py_runtime.glass.timeline import Timeline, timeline
from py_runtime.graph import Graph
from py_runtime.model import Model
from tests.glass.room import with_model
from tests.graph.engine_graphs import rows
from tests.graph.test_profile import two_outputs
from tests.runners import CpuRunner, NativeRunner, wait

LAYERS = 2


@pytest.fixture(scope="module")
def lines(cpu: CpuRunner, toy_model: Path) -> dict[str, Timeline]:
    async def look(model: Model) -> dict[str, Timeline]:
        near = await timeline(model, 1, 100, repeats=1)
        live = int(np.count_nonzero(model.graph.live_counts((0,)).any(axis=1)))
        assert len(near.dispatches) == live
        usual, model.graph.device.features = model.graph.device.features, frozenset()
        try:
            rough = await timeline(model, 1, 100, repeats=1)
        finally:
            model.graph.device.features = usual
        whole = await timeline(model, 300, 0, repeats=1)
        far = await timeline(model, 1, 400, repeats=1)
        return {"near": near, "rough": rough, "whole": whole, "far": far}

    return with_model(cpu, toy_model, look)


def test_sections_follow_one_another(lines: dict[str, Timeline]) -> None:
    sections = [each.section for each in lines["near"].dispatches]
    wanted = ["embedding", *(f"layer {number}" for number in range(LAYERS)), "head"]
    assert list(dict.fromkeys(sections)) == wanted
    assert sections == sorted(sections, key=wanted.index)


def test_groups_add_up(lines: dict[str, Timeline]) -> None:
    line = lines["near"]
    assert line.timing == "device"
    for what in ("op", "section", "shader"):
        groups = line.by(what)
        assert sum(group.count for group in groups) == len(line.dispatches)
        assert sum(group.share for group in groups) == pytest.approx(1)
        assert sum(group.microseconds for group in groups) == pytest.approx(line.microseconds)
    with pytest.raises(RequestError, match="op, section, shader"):
        line.by("colour")


def test_weights_are_read_once_and_caches_as_far_as_they_are_filled(
    lines: dict[str, Timeline],
) -> None:
    near, far = (sum(e.bytes_read for e in lines[name].dispatches) for name in ("near", "far"))
    a_position = 2 * LAYERS * 2 * 16 * 4  # keys and values of two heads of 16
    assert far - near == 300 * a_position
    assert near > 101 * a_position


def test_a_prefill_goes_in_chunks(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> Timeline:
        model.max_chunk = 100
        return await timeline(model, 250, 7, repeats=1)

    line = with_model(cpu, toy_model, look)
    assert sorted({each.call for each in line.dispatches}) == [0, 1, 2]
    begins = [each.begin for each in line.dispatches]
    assert begins == sorted(begins)
    assert (line.tokens, line.context) == (250, 7)


def test_segments_say_that_they_are_rough(lines: dict[str, Timeline]) -> None:
    rough, exact = lines["rough"], lines["near"]
    assert (rough.timing, rough.is_estimated) == ("segments", True)
    assert [each.step for each in rough.dispatches] == [each.step for each in exact.dispatches]
    assert "times of segments" in rough._repr_html_()


def test_the_trace_has_every_dispatch_once(lines: dict[str, Timeline], tmp_path: Path) -> None:
    line = lines["whole"]
    line.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    dispatches = [event for event in slices if event["cat"] == "dispatch"]
    assert [event["args"]["step"] for event in dispatches] == [e.step for e in line.dispatches]
    sections = [event for event in slices if event["cat"] == "section"]
    assert sum(event["dur"] for event in sections) == pytest.approx(line.microseconds)
    for event in slices:
        assert event["ts"] >= 0
        assert event["dur"] >= 0


def test_sources_of_fused_ops_are_all_there(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> tuple[list[tuple[int, ...]], Graph, list[str]]:
        places = places_of(model.graph)
        sources = [place.source for place in places.after]
        return places.origins, model.graph, sources

    origins, graph, sources = with_model(cpu, toy_model, look)
    assert {at for own in origins for at in own} == set(range(len(graph.written.ops)))
    swiglu = next(
        source
        for source, call in zip(sources, graph.program.ops, strict=True)
        if "swiglu" in call.name
    )
    modules = ("post_attention_layernorm", "mlp.gate_proj", "mlp:", "mlp.up_proj")
    lines = swiglu.splitlines()
    assert len(lines) == 5
    for module in modules:
        assert any(f"in layers.0.{module}" in line for line in lines)


def test_two_runs_are_compared_dispatch_by_dispatch(lines: dict[str, Timeline]) -> None:
    changes = lines["near"].compare(lines["far"])
    assert len(changes) == len({change.name for change in changes})
    total = lines["far"].microseconds - lines["near"].microseconds
    assert sum(change.difference for change in changes) == pytest.approx(total)
    biggest = [abs(change.difference) for change in changes]
    assert biggest == sorted(biggest, reverse=True)


def test_a_graph_alone_has_a_timeline_too(native: NativeRunner) -> None:
    async def look() -> tuple[Timeline, str]:
        writer = two_outputs()
        graph = await Graph.load(native.device, writer.program(), writer.constants, passes=())
        try:
            with pytest.raises(RequestError) as raised:
                await timeline(graph)
            return await timeline(graph, inputs=[rows(5)]), str(raised.value)
        finally:
            graph.unload()

    line, refused = wait(look())
    assert "inputs" in refused
    assert [each.op for each in line.dispatches] == [
        *["et_vk.rms_norm.default"] * 3,
        "aten.add.Tensor",
    ]
    assert [each.bytes_written for each in line.dispatches] == [rows(5).nbytes] * 4
    assert line.by("op")[0].count in (1, 3)


def test_what_does_not_fit_is_refused(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> None:
        for tokens, context in ((0, 0), (1, 512), (513, 0), (1, -1)):
            with pytest.raises(RequestError, match="do not fit"):
                await timeline(model, tokens, context)

    with_model(cpu, toy_model, look)
