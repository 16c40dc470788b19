"""The graph view: a layer before and after the passes, with the live shapes of a call."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.glass.graph_view import GraphView, OpView, Values, graph_view, op_view, values_of
from py_runtime.model import Model
from tests.glass.room import with_model
from tests.runners import CpuRunner, NativeRunner

TOKENS, CONTEXT, WIDTH = 5, 20, 64


@pytest.fixture(scope="module")
def views(cpu: CpuRunner, toy_model: Path) -> dict[str, GraphView]:
    async def look(model: Model) -> dict[str, GraphView]:
        call: dict[str, Any] = {"tokens": TOKENS, "context": CONTEXT}
        return {
            "after": await graph_view(model, "layer 1", **call),
            "before": await graph_view(model, "layer 1", fused=False, **call),
            "head": await graph_view(model, "head", **call),
        }

    return with_model(cpu, toy_model, look)


def test_a_layer_is_four_ops_after_the_passes(views: dict[str, GraphView]) -> None:
    names = [node.op.split(".")[1] for node in views["after"].nodes]
    assert names == ["qkv_rotary_cache", "attend_linear", "swiglu", "linear_residual"]
    assert views["after"].sections == ("embedding", "layer 0", "layer 1", "head")
    assert views["after"].symints == {"length": TOKENS, "start": CONTEXT}


def test_shapes_are_live_on_both_sides(views: dict[str, GraphView]) -> None:
    for name in ("before", "after"):
        last = views[name].nodes[-1]
        assert last.outputs[0].dims == (1, TOKENS, WIDTH)
        assert last.outputs[0].label.endswith("'layers.1'")
    assert views["head"].nodes[-1].outputs[0].dims == (1, 320)


def test_edges_follow_the_data(views: dict[str, GraphView]) -> None:
    for view in views.values():
        ids = {node.id for node in view.nodes}
        for edge in view.edges:
            assert edge.begin is None or edge.begin in ids
            assert edge.end is None or edge.end in ids
            assert None in (edge.begin, edge.end) or (edge.begin or 0) < (edge.end or 0)
        fed = {edge.end for edge in view.edges}
        assert ids <= fed, "every op reads something"
    before = views["before"]
    assert [edge.label for edge in before.edges if edge.end is None] == ["layers.1"]
    entering = {edge.label for edge in before.edges if edge.begin is None}
    assert {"layers.0", "start", "layers.1.self_attn.k_cache"} <= entering


def test_an_op_shows_its_shaders_and_numbers(native: NativeRunner, toy_model: Path) -> None:
    async def look(model: Model) -> list[OpView]:
        program = model.graph.program
        index = max(at for at, call in enumerate(program.ops) if "rms_norm" in call.name)
        found = [await op_view(model, index, tokens=TOKENS)]
        with pytest.raises(RequestError, match="there is no op 999"):
            await op_view(model, 999)
        with pytest.raises(RequestError, match="there is no 'layer 7'; there are embedding"):
            await graph_view(model, "layer 7")
        return found

    (norm,) = with_model(native, toy_model, look)
    (launch,) = norm.launches
    assert launch.shader == "reduce/rms_norm"
    assert "inverseSqrt" in launch.source
    assert launch.params["width"] == WIDTH
    assert launch.params["rows"] == 1, "of the last token only"
    assert {binding.name for binding in launch.bindings} >= {"x", "weight", "out"}
    assert [port.name for port in norm.node.inputs] == ["x", "weight", "eps"]


def test_values_are_those_of_a_run(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> tuple[list[Values], np.ndarray]:
        last = len(model.graph.program.ops) - 1
        return await values_of(model, last, tokens=[1, 2, 3]), await model.prefill([1, 2, 3])

    (found,), logits = with_model(cpu, toy_model, look)
    assert found.dims == (1, len(logits))
    np.testing.assert_allclose(found.first, logits[: len(found.first)], rtol=1e-6)
    assert found.most == pytest.approx(float(logits.max()))
    assert found.rms == pytest.approx(float(np.sqrt(np.square(logits).mean())), rel=1e-5)
    assert sum(found.histogram) == logits.size
    assert found.not_finite == 0
