"""Patterns of heads, and measurements that tell what kind of head each is."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.glass.cache import ActivationCache
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.views.common import Data, Progress, checked_places, ignore
from py_runtime.glass.workspace import Workspace
from py_runtime.model import Model

REPEATED = 24  # random tokens, which come twice
CLEAR = 0.4  # the share of its attention that gives a head its label
RESTING = "first token"
KINDS = ("previous token", RESTING, "duplicate token", "induction")


async def attention(
    model: Model,
    given: Any,
    *,
    layers: Any = None,
    positions: Any = None,
    labels: bool = True,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return the patterns of layers [layers, heads, S, S], and what their heads do.

    With `positions`, patterns are of these queries and keys only; all the text is read.
    Scores are shares of attention, from 0 to 1: on the token before, the first one, earlier ones of
    the same kind, all over this text; and, over random tokens that come twice, on what followed the
    same token the first time (induction). A head with a clear one is labelled by it; by the first
    token only if no other is clear, for there heads rest that find nothing to do in a text.
    """
    cancel = cancel or CancelToken()
    tokens = tokens_of(model, given)
    having = Workspace.of(model).layers_with("attn.hook_pattern")
    listed = having if layers is None else [layers] if isinstance(layers, int) else list(layers)
    if not listed or any(layer not in having for layer in listed):
        raise RequestError(
            f"layers with attention are {', '.join(map(str, having)) or 'none'}", "layers"
        )
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in listed]
    places = checked_places(positions, len(tokens), "positions")

    def first(done: int, total: int) -> None:
        progress(done, total * (2 if labels else 1))

    _, cache = await run_with_cache(
        model, tokens, names, return_type=None, progress=first, cancel=cancel
    )
    found: Data = {
        "layers": listed,
        "tokens": tokens,
        "positions": places,
        "texts": texts_of(model, [tokens[place] for place in places]),
        # Layers may differ in their number of heads.
        "patterns": [cache[name][0][:, places][:, :, places] for name in names],
    }
    if labels:
        random = _repeated(model)

        def second(done: int, total: int) -> None:
            progress(total + done, 2 * total)

        _, twice = await run_with_cache(
            model, random, names, return_type=None, progress=second, cancel=cancel
        )
        found["heads"] = _labelled(listed, names, tokens, cache, twice)
    return found


def _repeated(model: Model) -> list[int]:
    """Return random tokens that come twice, the same in each run."""
    random = np.random.default_rng(0)
    special = {model.tokenizer.id_of(name) for name in model.tokenizer.control_tokens}
    ordinary = [token for token in range(model.vocabulary) if token not in special]
    half = random.choice(ordinary, min(REPEATED, len(ordinary)), replace=False).tolist()
    begin = model.tokenizer.encode("")[:1]
    return [*begin, *half, *half]


def _labelled(
    layers: list[int],
    names: list[str],
    tokens: list[int],
    cache: ActivationCache,
    twice: ActivationCache,
) -> list[Data]:
    heads = []
    for layer, name in zip(layers, names, strict=True):
        scores = np.stack([*_scores(cache[name][0], tokens), _induction(twice[name][0])])
        for head, own in enumerate(scores.T):
            heads.append(
                {
                    "layer": layer,
                    "head": head,
                    "label": _label(own),
                    "scores": dict(zip(KINDS, map(float, own), strict=True)),
                }
            )
    return heads


def _label(scores: np.ndarray) -> str | None:
    """Return the kind of a head with these scores [kinds], or None where none is clear."""
    does = np.where(np.array(KINDS) == RESTING, 0, scores)
    if does.max() >= CLEAR:
        return KINDS[int(does.argmax())]
    return RESTING if scores.max() >= CLEAR else None


def _scores(pattern: np.ndarray, tokens: list[int]) -> list[np.ndarray]:
    """Return the share on the token before, on the first one, and on earlier equal ones: [H]."""
    heads, count, _ = pattern.shape
    nothing = np.zeros(heads, np.float32)
    if count < 3:
        return [nothing] * 3
    before = np.diagonal(pattern, -1, 1, 2)[:, 1:].mean(axis=-1)  # the first one is both
    first = pattern[:, 2:, 0].mean(axis=-1)
    ids = np.array(tokens)
    same = np.tril(ids[:, None] == ids[None], -1)
    rows = same.any(axis=-1)
    duplicate = (pattern * same)[:, rows].sum(axis=-1).mean(axis=-1) if rows.any() else nothing
    return [before, first, duplicate]


def _induction(pattern: np.ndarray) -> np.ndarray:
    """Return the share on what followed the same token the first time: [H]."""
    count = pattern.shape[1]
    length = count // 2
    found: np.ndarray = np.diagonal(pattern, 1 - length, 1, 2)[:, -length:].mean(axis=-1)
    return found
