"""The lengths of what the stream holds and gets, and the numbers that stand out."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.views.common import Data, Progress, checked_count, ignore
from py_runtime.glass.workspace import Workspace
from py_runtime.model import Model

MAX_OUTLIERS = 200


async def norms(
    model: Model,
    given: Any,
    *,
    outliers: int = 20,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return the L2 norm of the stream and of what each part adds to it, by layer and position.

    stream [layers + 1, S] is before each layer and behind the last; added has those of mixers
    (attention and others) and MLPs. outliers are the largest numbers of the stream, with how many
    times the RMS of their row each is.
    """
    checked_count(outliers, MAX_OUTLIERS, "outliers")
    tokens = tokens_of(model, given)
    space = Workspace.of(model)
    layers = len(space.anatomy.blocks)
    stream = [f"blocks.{number}.hook_resid_pre" for number in range(layers)]
    stream.append(f"blocks.{layers - 1}.hook_resid_post")
    mixers = [_mixer(space, number) for number in range(layers)]
    mlps = [_present(space, f"blocks.{number}.hook_mlp_out") for number in range(layers)]
    wanted = [name for name in (*stream, *mixers, *mlps) if name is not None]
    _, cache = await run_with_cache(
        model, tokens, wanted, return_type=None, progress=progress, cancel=cancel
    )
    nothing = np.zeros(len(tokens), np.float32)

    def lengths(names: list[str | None]) -> np.ndarray:
        rows = [nothing if n is None else np.linalg.norm(cache[n][0], axis=-1) for n in names]
        return np.stack(rows).astype(np.float32)

    return {
        "tokens": tokens,
        "texts": texts_of(model, tokens),
        "stream": lengths([*stream]),
        "mixers": lengths(mixers),
        "mlps": lengths(mlps),
        "names": {"stream": stream, "mixers": mixers, "mlps": mlps},
        "outliers": _outliers(np.stack([cache[name][0] for name in stream]), outliers),
    }


def _mixer(space: Workspace, number: int) -> str | None:
    path = f"blocks.{number}"
    own = _present(space, f"{path}.hook_attn_out")
    return own or _present(space, f"{path}.hook_mixer_out")


def _present(space: Workspace, name: str) -> str | None:
    return name if name in space.points else None


def _outliers(streams: np.ndarray, count: int) -> list[Data]:
    """Return the largest numbers of the stream [layers, S, W], one of each layer and place in it.

    The same dims stand out at many positions; the largest of these is listed.
    """
    rms = np.sqrt(np.square(streams).mean(axis=-1, keepdims=True))
    times = np.abs(streams) / np.maximum(rms, 1e-30)
    where = times.argmax(axis=1)  # [layers, W]: the position
    largest = times.max(axis=1)
    order = np.argsort(-largest, axis=None)[:count]
    found = []
    for layer, neuron in zip(*np.unravel_index(order, largest.shape), strict=True):
        position = int(where[layer, neuron])
        found.append(
            {
                "layer": int(layer),
                "position": position,
                "neuron": int(neuron),
                "value": float(streams[layer, position, neuron]),
                "times": float(largest[layer, neuron]),
            }
        )
    return found
