"""The logit lens: what each layer would say if it were the last."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.views.common import (
    Data,
    Progress,
    checked_count,
    checked_places,
    ignore,
    log_softmax,
)
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.model import Model
from py_runtime.sampling.narrow import largest

MAX_RACE = 20
SHARE = 0.2  # of the work, for the run itself


async def lens(
    model: Model,
    given: Any,
    *,
    positions: Any = None,
    token: int | None = None,
    race: int = 8,
    at: int = -1,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return what each layer predicts at each position.

    top [layers + 1, positions] are the likeliest tokens, with their texts and probabilities; the
    first row is of the embedding alone. token_prob and token_rank are those of `token`, by default
    what the model would write at the end. `race` has the tokens that come first at position `at`
    in the end, and their probabilities layer by layer.
    """
    cancel = cancel or CancelToken()
    tokens = tokens_of(model, given)
    places = checked_places(positions, len(tokens), "positions")
    racing = checked_places(at, len(tokens), "at")[0]
    checked_count(race, MAX_RACE, "race")
    if token is not None and not (type(token) is int and 0 <= token < model.vocabulary):
        raise RequestError(f"token must be an integer from 0 to {model.vocabulary - 1}", "token")
    space = Workspace.of(model)
    layers = len(space.anatomy.blocks)
    names = ["hook_embed", *(f"blocks.{number}.hook_resid_post" for number in range(layers))]
    _, cache = await run_with_cache(model, tokens, names, return_type=None, cancel=cancel)
    streams = np.stack([cache[name][0] for name in names])  # [layers + 1, S, W]

    async with looking(model, cancel):
        work = _Lens(model, streams, places, racing, progress, cancel)
        await model.session.device.survive(lambda: work.compute(token, race), cancel)
    found = work.found
    return {
        "layers": names,
        "tokens": tokens,
        "texts": texts_of(model, tokens),
        "positions": places,
        **found,
        "token_text": texts_of(model, [found["token"]])[0],
        "top_texts": [texts_of(model, row) for row in found["top"].tolist()],
        "race_texts": texts_of(model, found["race"].tolist()),
    }


class _Lens:
    """The unembedding of all layers at some positions."""

    def __init__(
        self,
        model: Model,
        streams: np.ndarray,
        places: list[int],
        racing: int,
        progress: Progress,
        cancel: CancelToken,
    ) -> None:
        self.found: Data = {}
        self._model = model
        self._streams = streams
        self._places = places
        self._racing = racing
        self._progress = progress
        self._cancel = cancel

    async def compute(self, token: int | None, race: int) -> None:
        unembed = await Workspace.of(self._model).unembed(self._model)
        layers, _, width = self._streams.shape
        count = len(self._places)
        last = self._streams[-1][[-1, self._racing]]
        final, raced = await unembed.logits(last, self._cancel)
        chosen = int(final.argmax()) if token is None else token
        near = largest(raced, race)
        runners = near[np.argsort(-raced[near], kind="stable")[:race]]
        rows = self._streams[:, self._places].reshape(-1, width)
        top = np.zeros(layers * count, np.int32)
        numbers = np.zeros((4, layers * count), np.float32)
        async for first, logits in unembed.chunks(rows, self._cancel):
            here = slice(first, first + len(logits))
            logprobs = log_softmax(logits)
            best = logits.argmax(axis=-1)
            top[here] = best
            own = logprobs[:, chosen]
            numbers[0, here] = np.exp(logprobs[np.arange(len(best)), best])
            numbers[1, here] = np.exp(own)
            numbers[2, here] = (logprobs > own[:, None]).sum(axis=-1)
            numbers[3, here] = -(np.exp(logprobs) * np.maximum(logprobs, -1e4)).sum(axis=-1)
            self._progress(here.stop, layers * count + layers)
        racing = await unembed.logits(self._streams[:, self._racing], self._cancel)
        by_layer = np.exp(log_softmax(racing)[:, runners])  # [layers, race]
        self._progress(1, 1)
        dims = (layers, count)
        prob, token_prob, rank, entropy = numbers.reshape(4, *dims)
        self.found = {
            "top": top.reshape(dims),
            "prob": prob,
            "entropy": entropy,
            "token": chosen,
            "token_prob": token_prob,
            "token_rank": rank.astype(np.int32),
            "at": self._racing,
            "race": runners.astype(np.int32),
            "race_prob": by_layer,
        }
