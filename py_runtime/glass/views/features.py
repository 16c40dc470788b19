"""The features of a sparse autoencoder along a text, and the tokens that each of them promotes."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.base.shapes import numel
from py_runtime.glass.autoencoders.autoencoder import Autoencoder
from py_runtime.glass.direct import ROWS, best_tokens, load_direct
from py_runtime.glass.edits import ALL, Edit, Positions
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.points import NORMALISED, VALUE, HookPoint, full_name
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.views.common import Data, Progress, checked_count, checked_places, ignore
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.sampling.narrow import largest

MAX_STRONGEST, MAX_PROMOTED, MAX_WATCHED = 50, 50, 200
# What is the residual stream, or is added to it.
STREAM = re.compile(r"hook_embed|blocks\.\d+\.hook_(resid_\w+|\w+_out)")
BEFORE = re.compile(r"blocks\.([1-9]\d*)\.hook_resid_pre")


def hooks_for(model: Model, autoencoder: Autoencoder) -> list[str]:
    """Return the hooks whose activations are as wide as the autoencoder's."""
    points = Workspace.of(model).points.values()
    return [point.name for point in points if _width(point) == autoencoder.width]


def chosen_hook(model: Model, autoencoder: Autoencoder, hook: Any = None) -> str:
    """Return the hook that is read: the given one, or that of the autoencoder's configuration."""
    wanted = autoencoder.hook if hook is None else hook
    if wanted is None:
        raise RequestError(message("autoencoder_no_hook", name=autoencoder.name), "hook")
    point = Workspace.of(model).points.get(full_name(wanted))
    model_name = model.manifest.name
    if point is None or _width(point) == 0:
        said = message("autoencoder_hook", hook=str(wanted)[:100], model=model_name)
        raise RequestError(said, "hook")
    if _width(point) != autoencoder.width:
        said = message(
            "autoencoder_width",
            name=autoencoder.name,
            width=autoencoder.width,
            hook=point.name,
            model=model_name,
            found=_width(point),
        )
        raise RequestError(said, "hook")
    return point.name


def _width(point: HookPoint) -> int:
    """Return how many numbers a token has there, heads together; 0: it is not for autoencoders."""
    if point.kind not in (VALUE, NORMALISED):
        return 0
    return numel(int(dim) for dim in point.shape[2:])


async def features(
    model: Model,
    given: Any,
    autoencoder: Autoencoder,
    *,
    hook: str | None = None,
    positions: Any = None,
    k: int = 8,
    watch: Sequence[int] = (),
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return which features of an autoencoder are active, and how strongly, token by token.

    `top` [positions, k] are the strongest of each token, −1 where fewer are active; `features` [N]
    are all of these and those of `watch`, and `activations` [N, positions] theirs. `active` counts
    all that are active at a position. `scale` is by how much activations were divided first: 1
    where they are not normalised. `explained` is the share of the activations' variance that
    the reconstruction has, and `l0` the mean of `active`; both leave out the text's first token,
    whose activations are of another size in most models.
    """
    cancel = cancel or CancelToken()
    name = chosen_hook(model, autoencoder, hook)
    tokens = tokens_of(model, given)
    places = checked_places(positions, len(tokens), "positions")
    checked_count(k, MAX_STRONGEST, "k")
    watched = list(watch)
    if len(watched) > MAX_WATCHED:
        raise RequestError(f"watch has at most {MAX_WATCHED} features", "watch")
    for feature in watched:
        autoencoder.check_feature(feature)
    _, cache = await run_with_cache(model, tokens, name, return_type=None, cancel=cancel)
    x = cache[name][0].reshape(len(tokens), -1)[places]  # [S, D]

    def encoded(done: int, total: int) -> None:
        progress(done, 2 * total)

    def decoded(done: int, total: int) -> None:
        progress(total + done, 2 * total)

    found = await autoencoder.encode(x, encoded, cancel)  # [S, F]
    rebuilt = await autoencoder.decode(found, x, decoded, cancel)
    counts = np.count_nonzero(found, axis=1)
    top = _strongest(found, min(k, autoencoder.features))
    listed = sorted({*top[top >= 0].tolist(), *watched})
    own = np.array([place > 0 for place in places])
    counted = own if own.any() else ~own
    return {
        "tokens": tokens,
        "texts": texts_of(model, tokens),
        "positions": places,
        "hook": name,
        "features": np.array(listed, np.int32),
        "activations": np.ascontiguousarray(found[:, listed].T),
        "top": top,
        "active": counts.astype(np.int32),
        "scale": autoencoder.scale_of(x[counted]),
        "explained": _explained(x[counted], rebuilt[counted]),
        "l0": float(counts[counted].mean()),
    }


def _strongest(found: np.ndarray, k: int) -> np.ndarray:
    """Return the places of each row's largest numbers, −1 for those that are zero: [S, k]."""
    top = np.full((len(found), k), -1, np.int32)
    for row, values in enumerate(found):
        near = largest(values, k)
        best = near[np.argsort(-values[near], kind="stable")[:k]]
        best = best[values[best] > 0]
        top[row, : len(best)] = best
    return top


def _explained(x: np.ndarray, rebuilt: np.ndarray) -> float | None:
    """Return the share of the variance that is explained; None: there is no variance."""
    wide = x.astype(np.float64)
    total = np.square(wide - wide.mean(axis=0)).sum()
    return None if total == 0 else float(1 - np.square(wide - rebuilt).sum() / total)


async def promoted(
    model: Model,
    autoencoder: Autoencoder,
    features: Sequence[int],
    *,
    hook: str | None = None,
    k: int = 10,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> list[Data]:
    """Return the tokens that features make likelier, and those that they make less likely.

    It is the feature's row of the decoder, seen through the unembedding. For hooks that are no part
    of the stream there are none.
    """
    cancel = cancel or CancelToken()
    checked_count(k, MAX_PROMOTED, "k")
    name = chosen_hook(model, autoencoder, hook)
    listed = list(features)
    if len(listed) > MAX_WATCHED:
        raise RequestError(f"at most {MAX_WATCHED} features are looked at together", "features")
    rows = [await autoencoder.direction(feature) for feature in listed]
    if not rows or STREAM.fullmatch(name) is None:
        return [{"feature": each, "promotes": [], "suppresses": []} for each in listed]
    space = Workspace.of(model)
    found: list[np.ndarray] = []

    async def load() -> tuple[Graph, Graph]:
        graph = await load_direct(model.graph, space.anatomy)
        return graph, graph

    async def run() -> None:
        found.clear()  # it may not be the first time: devices are lost
        graph = await space.kept(model, "direct", load)
        for first in range(0, len(rows), ROWS):
            cancel.check()
            found.extend((await graph.run([np.stack(rows[first : first + ROWS])]))[0])
            progress(len(found), len(rows))

    async with looking(model, cancel):
        await model.session.device.survive(run, cancel)
    return [
        {
            "feature": feature,
            "promotes": best_tokens(model, logits, k),
            "suppresses": [
                {**each, "logit": -each["logit"]} for each in best_tokens(model, -logits, k)
            ],
        }
        for feature, logits in zip(listed, found, strict=True)
    ]


async def feature_edit(
    model: Model,
    autoencoder: Autoencoder,
    feature: int,
    strength: float = 1.0,
    *,
    hook: str | None = None,
    positions: Positions = ALL,
) -> Edit:
    """Return the edit that adds a feature, by this strength, wherever the model computes.

    The strength counts as activations of the feature do, but where these are normalised.
    """
    name = chosen_hook(model, autoencoder, hook)
    before = BEFORE.fullmatch(name)
    if before is not None:  # the same tensor, by the name that steering vectors have
        name = f"blocks.{int(before[1]) - 1}.hook_resid_post"
    return Edit(
        name,
        vector=await autoencoder.direction(feature),
        strength=strength,
        positions=positions,
        name=edit_name(autoencoder, feature),
    )


def edit_name(autoencoder: Autoencoder, feature: int) -> str:
    """Return the name of a feature's edit, by which its strength is changed."""
    return f"{autoencoder.name} · {feature}"
