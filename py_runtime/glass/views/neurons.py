"""The neurons of MLPs that fire for a token, and the tokens that each of them promotes."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.glass.anatomy import Anatomy, Mlp
from py_runtime.glass.direct import best_tokens, direct_calls
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.programs import part
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.views.common import Data, Progress, checked_count, checked_places, ignore
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.program import Program

MAX_NEURONS, MAX_PROMOTED = 50, 50
ROWS = 8  # neurons that are looked at together


async def neurons(
    model: Model,
    given: Any,
    *,
    layers: Any = None,
    position: int = -1,
    k: int = 10,
    promoted: int = 8,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return the most active neurons at a position, each with the tokens that it promotes.

    What a neuron promotes is its column of the MLP's last matrix, seen through the unembedding:
    the tokens whose logits grow most as it fires, with the sign that its activation has here.
    """
    cancel = cancel or CancelToken()
    tokens = tokens_of(model, given)
    place = checked_places(position, len(tokens), "position")[0]
    checked_count(k, MAX_NEURONS, "k")
    checked_count(promoted, MAX_PROMOTED, "promoted")
    space = Workspace.of(model)
    having = space.layers_with("mlp.hook_post")
    if not having:
        raise RequestError("no layer has neurons to show: the MLPs are experts", "layers")
    listed = having if layers is None else [layers] if isinstance(layers, int) else list(layers)
    if not listed or any(layer not in having for layer in listed):
        raise RequestError(f"layers with neurons are {', '.join(map(str, having))}", "layers")
    names = [f"blocks.{layer}.mlp.hook_post" for layer in listed]
    _, cache = await run_with_cache(model, tokens, names, return_type=None, cancel=cancel)
    active = np.concatenate([cache[name][0, place] for name in names])
    owners = np.repeat(listed, [cache[name].shape[-1] for name in names])
    starts = {layer: int(np.argmax(owners == layer)) for layer in listed}
    order = np.argsort(-np.abs(active), kind="stable")[:k].tolist()
    found = [
        {
            "layer": int(owners[at]),
            "neuron": at - starts[int(owners[at])],
            "activation": float(active[at]),
        }
        for at in order
    ]

    async def promote() -> None:
        for done, layer in enumerate(sorted({each["layer"] for each in found})):
            cancel.check()
            own = [each for each in found if each["layer"] == layer]
            logits = await _promoted(model, space, layer, [each["neuron"] for each in own])
            for each, row in zip(own, logits, strict=True):
                each["promotes"] = best_tokens(
                    model, row if each["activation"] >= 0 else -row, promoted
                )
            progress(done + 1, len({each["layer"] for each in found}))

    async with looking(model, cancel):
        await model.session.device.survive(promote, cancel)
    return {
        "tokens": tokens,
        "texts": texts_of(model, tokens),
        "position": place,
        "neurons": found,
    }


async def _promoted(model: Model, space: Workspace, layer: int, places: list[int]) -> np.ndarray:
    """Return the logits that neurons of a layer add to, for a unit of each: f32 [N, V]."""
    mlp = next(other.mlp for other in space.anatomy.blocks[layer].others if other.mlp is not None)

    async def load() -> tuple[Graph, Graph]:
        program = _direct_path(space.anatomy, mlp, layer)
        graph = await Graph.load(model.graph.device, program, base=model.graph)
        return graph, graph

    graph = await space.kept(model, ("promoted", layer), load)
    hidden = space.anatomy.flow.dims(mlp.post)[-1]
    rows = []
    for first in range(0, len(places), ROWS):
        some = places[first : first + ROWS]
        units = np.zeros((len(some), hidden), np.float32)
        units[np.arange(len(some)), some] = 1
        rows.append((await graph.run([units]))[0])
    return np.concatenate(rows)


def _direct_path(anatomy: Anatomy, mlp: Mlp, layer: int) -> Program:
    """Write hidden → the MLP's last matrix → the last norm's weight → the head."""
    calls = [mlp.down, *direct_calls(anatomy, mlp.down.args[-1])]
    name = f"neurons of layer {layer}"
    return part(anatomy.program, name, ROWS, [mlp.down.args[0]], calls, anatomy.program.outputs[0])
