"""A map of texts: near each other where the model's embeddings of them are alike."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InputError, RequestError
from py_runtime.base.request_texts import refuse_half_pairs
from py_runtime.glass.layout import STEPS, groups, neighbours, principal
from py_runtime.glass.views.common import Data, Progress, ignore
from py_runtime.glass.workspace import looking
from py_runtime.model import AnyModel, Encoder
from py_runtime.model.embed import hidden_states, pooled

MAX_TEXTS = 2000  # t-SNE compares each with all others
MAX_TOKENS = 512  # of a text that count
MAX_CHARACTERS = 16 * MAX_TOKENS
AT_ONCE = 16  # texts, before whoever waits for the model has its turn
COMPONENTS = 50  # that neighbours and groups are found by
Prompt = tuple[int, ...]


async def map_texts(
    model: AnyModel,
    texts: Sequence[str],
    *,
    pooling: str | None = None,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return places in two dimensions for texts, blank ones left out: `at` has who the others are.

    principal [N, 2] are the two principal components of their embeddings, which hold these `shares`
    of all differences; neighbours [N, 2] are places by t-SNE, where groups come apart and only what
    is near means something. groups [N] are k-means' of the embeddings. Of a text longer than
    MAX_TOKENS the first ones count (is_cut). Equal texts are at the same place.

    A text encoder pools as its files say, a model that writes by the mean; `pooling` is another
    way.
    """
    cancel = cancel or CancelToken()
    _check(texts)
    read_vectors = _vectors_of(model, pooling, cancel)
    most = min(MAX_TOKENS, model.context)
    prompts: dict[Prompt, int] = {}  # those that differ
    at, of_text, is_cut = [], [], []
    for place, text in enumerate(texts):
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)  # a caller may cancel
            cancel.check()
        tokens = _tokens_of(model, text[:MAX_CHARACTERS], most) if text.strip() else []
        if not tokens:
            continue
        at.append(place)
        is_cut.append(len(tokens) > most or len(text) > MAX_CHARACTERS)
        of_text.append(prompts.setdefault(tuple(_cut(model, tokens, most)), len(prompts)))
    if not at:
        raise RequestError("there is no text among the texts", "texts")
    read, total = 0, sum(map(len, prompts)) + STEPS
    vectors = []
    for batch in _batches(list(prompts)):
        async with aclosing(read_vectors(batch)) as coming:
            for prompt in batch:
                vectors.append(await anext(coming))
                read += len(prompt)
                progress(read, total)
    found = np.stack(vectors)  # [different texts, W]
    if not np.isfinite(found).all():
        raise InputError(f"{model.manifest.name} gives embeddings that are no numbers")
    points, shares = await principal(found, COMPONENTS, cancel)

    def laid_out(step: int, _: int) -> None:
        progress(read + step, total)

    places = await neighbours(points, points[:, :2], laid_out, cancel)
    return {
        "model": model.manifest.name,
        "at": at,
        "is_cut": np.array(is_cut, np.uint8),
        "principal": points[of_text, :2].astype(np.float32),
        "shares": [float(share) for share in shares[:2]],
        "neighbours": places[of_text].astype(np.float32),
        "groups": (await groups(points, cancel))[of_text],
    }


def _vectors_of(
    model: AnyModel, pooling: str | None, cancel: CancelToken
) -> Callable[[list[Prompt]], AsyncGenerator[np.ndarray, None]]:
    """Return what yields the vector of each prompt of a batch, while it holds the model."""
    if isinstance(model, Encoder):
        encoder = model
        encoder.encoding.shares(1, pooling)  # a way that it does not know is told first

        async def encoded(batch: list[Prompt]) -> AsyncGenerator[np.ndarray, None]:
            for vector in await encoder.vectors([list(each) for each in batch], pooling, cancel):
                yield vector

        return encoded
    writer = model
    own = "mean" if pooling is None else pooling
    hidden = hidden_states(writer, own)

    async def read(batch: list[Prompt]) -> AsyncGenerator[np.ndarray, None]:
        async with looking(writer, cancel):
            for prompt in batch:
                yield await pooled(writer, hidden, list(prompt), own, cancel)

    return read


def _tokens_of(model: AnyModel, text: str, most: int) -> list[int]:
    if isinstance(model, Encoder):
        return model.parse_inputs([text])[0]  # with the model's own prompt before it
    return model.tokenizer.encode(text, most=most)


def _cut(model: AnyModel, tokens: list[int], most: int) -> list[int]:
    """Return the first tokens; encoders keep the last one, which ends all texts they learned."""
    if isinstance(model, Encoder) and len(tokens) > most:
        return [*tokens[: most - 1], tokens[-1]]
    return tokens[:most]


def _check(texts: Any) -> None:
    is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise RequestError("texts is a list of texts", "texts")
    refuse_half_pairs({"texts": list(texts)})
    count = sum(not text.isspace() for text in texts if text)
    if count > MAX_TEXTS:
        raise RequestError(f"a map has {MAX_TEXTS} texts at most, and these are {count}", "texts")


def _batches(prompts: list[Prompt]) -> Iterator[list[Prompt]]:
    for begin in range(0, len(prompts), AT_ONCE):
        yield prompts[begin : begin + AT_ONCE]
