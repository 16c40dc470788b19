"""A map of texts: near each other where the model's embeddings of them are alike."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InputError, RequestError
from py_runtime.base.request_texts import refuse_half_pairs
from py_runtime.glass.layout import STEPS, groups, neighbours, principal
from py_runtime.glass.views.common import Data, Progress, ignore
from py_runtime.glass.workspace import looking
from py_runtime.model import Model
from py_runtime.model.embed import hidden_states, pooled

MAX_TEXTS = 2000  # t-SNE compares each with all others
MAX_TOKENS = 512  # of a text that count
MAX_CHARACTERS = 16 * MAX_TOKENS
AT_ONCE = 16  # texts, before whoever waits for the model has its turn
COMPONENTS = 50  # that neighbours and groups are found by


async def map_texts(
    model: Model,
    texts: Sequence[str],
    *,
    pooling: str = "mean",
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Return places in two dimensions for texts, blank ones left out: `at` has who the others are.

    principal [N, 2] are the two principal components of their embeddings, which hold these `shares`
    of all differences; neighbours [N, 2] are places by t-SNE, where groups come apart and only what
    is near means something. groups [N] are k-means' of the embeddings. Of a text longer than
    MAX_TOKENS the first ones count (is_cut). Equal texts are at the same place.
    """
    cancel = cancel or CancelToken()
    at = _checked(texts)
    hidden = hidden_states(model, pooling)
    prompts: dict[tuple[int, ...], int] = {}  # those that differ
    of_text, is_cut = [], []
    for place in at:
        tokens = _tokens(model, texts[place])
        most = min(MAX_TOKENS, model.context)
        is_cut.append(len(tokens) > most or len(texts[place]) > MAX_CHARACTERS)
        of_text.append(prompts.setdefault(tuple(tokens[:most]), len(prompts)))
    total = sum(map(len, prompts)) + STEPS
    done = 0

    async def vectors() -> np.ndarray:
        nonlocal done
        rows = []
        for batch in _batches(list(prompts)):
            async with looking(model, cancel):
                for prompt in batch:
                    rows.append(await pooled(model, hidden, list(prompt), pooling, cancel))
                    done += len(prompt)
                    progress(done, total)
        return np.stack(rows)

    found = await vectors()  # [different texts, W]
    if not np.isfinite(found).all():
        raise InputError(f"{model.manifest.name} gives embeddings that are no numbers")
    points, shares = principal(found, COMPONENTS)
    read = done

    def laid(step: int, _: int) -> None:
        progress(read + step, total)

    places = await neighbours(points, points[:, :2], laid, cancel)
    return {
        "at": at,
        "is_cut": np.array(is_cut, np.uint8),
        "principal": points[of_text, :2].astype(np.float32),
        "shares": [float(share) for share in shares[:2]],
        "neighbours": places[of_text].astype(np.float32),
        "groups": (await groups(points, cancel))[of_text],
    }


def _checked(texts: Any) -> list[int]:
    """Return the places of the texts that are not blank."""
    if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
        raise RequestError("texts is a list of texts", "texts")
    if not all(isinstance(text, str) for text in texts):
        raise RequestError("texts is a list of texts", "texts")
    refuse_half_pairs({"texts": list(texts)})
    at = [place for place, text in enumerate(texts) if text.strip()]
    if not at:
        raise RequestError("there is no text among the texts", "texts")
    if len(at) > MAX_TEXTS:
        raise RequestError(f"a map has {MAX_TEXTS} texts at most, and these are {len(at)}", "texts")
    return at


def _tokens(model: Model, text: str) -> list[int]:
    return model.tokenizer.encode(text[:MAX_CHARACTERS], most=MAX_TOKENS)


def _batches(prompts: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    for begin in range(0, len(prompts), AT_ONCE):
        yield prompts[begin : begin + AT_ONCE]
