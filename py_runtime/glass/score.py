"""Scores of the tokens of a text: how expected each was, and what else might have come."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.generation.options import parse_options
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model
from py_runtime.sampling import SamplingSettings, TokenHistory
from py_runtime.sampling.adjust import Adjustment
from py_runtime.sampling.candidates import Candidates, greedy
from py_runtime.sampling.narrow import largest

MAX_BEST = 100
Progress = Callable[[int, int], None]  # (done, of all)


@dataclass(frozen=True)
class Alternative:
    """A token that might have come."""

    token: int
    text: str
    logprob: float
    is_cut: bool | None  # whether the settings would never draw it; None: none were given


@dataclass(frozen=True)
class Score:
    """A token of the text; what is said of the first one is None, for nothing comes before it."""

    token: int | None  # None: what would come after the text
    text: str
    logprob: float | None
    rank: int | None  # 0: the likeliest
    entropy: float | None  # of all that might have come, in nats
    is_cut: bool | None
    best: tuple[Alternative, ...]


async def score(
    model: Model,
    given: Any,
    *,
    k: int = 10,
    settings: Mapping[str, Any] | None = None,
    prompt: int | None = None,
    since: int = 0,
    progress: Progress = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> list[Score]:
    """Score every token of a text (or messages, or tokens), and what would come after it.

    `settings` are sampling settings as `chat` takes them; the first `prompt` tokens are not of the
    answer, as penalties count them (all, where it is not given). Tokens before `since` are not
    scored, nor computed where the chat has them. With steering, this is the steered model's view.
    """
    cancel = cancel or CancelToken()
    tokens = tokens_of(model, given)
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MAX_BEST:
        raise RequestError(f"k must be an integer from 0 to {MAX_BEST}", "k")
    cuts = None if settings is None else _Cuts(model, settings, tokens, prompt)
    if isinstance(since, bool) or not isinstance(since, int) or not 0 <= since < len(tokens):
        raise RequestError(f"since must be an integer from 0 to {len(tokens) - 1}", "since")
    begin = max(since - 1, 0)  # the row that says what comes at `since`
    rows: dict[int, np.ndarray] = {}  # of the stream, by their first position
    found: list[Score] = []
    async with looking(model, cancel, prompt):
        space = Workspace.of(model)
        stream = space.anatomy.rows

        async def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
            start = int(inputs[1][0])
            for later in [at for at in rows if at >= start]:
                del rows[later]  # it is not the first time: devices are lost
            rows[start] = (await run_probed(model.graph, inputs, [stream]))[stream][0]
            progress(start + len(rows[start]) - begin, 2 * (len(tokens) - begin))
            return [rows[start]]

        async def compute() -> list[Score]:
            await model.session.compute_each(tokens, cancel, run, since=begin)
            first_row = min(rows)
            residual = np.concatenate(list(rows.values()))[begin - first_row :]  # [S - begin, W]
            unembed = await space.unembed(model)
            found: list[Score] = []
            if since == 0:
                text = texts_of(model, tokens[:1])[0]
                found.append(Score(tokens[0], text, None, None, None, None, ()))
            async for first, logits in unembed.chunks(residual, cancel):
                for at, row in enumerate(logits, start=begin + first + 1):
                    token = tokens[at] if at < len(tokens) else None
                    kept = None if cuts is None else cuts.kept(row, at)
                    found.append(_score(model, row, token, k, kept))
                done = len(tokens) - begin + first + len(logits)
                progress(done, 2 * (len(tokens) - begin))
            return found

        found = await model.session.device.survive(compute, cancel)
    return found


def _score(
    model: Model, logits: np.ndarray, token: int | None, k: int, kept: np.ndarray | None
) -> Score:
    peak = float(logits.max())
    weights = np.exp(np.subtract(logits, peak, dtype=np.float64))
    total = float(weights.sum())
    normaliser = peak + math.log(total)
    entropy = normaliser - float(weights @ logits.astype(np.float64)) / total
    near = largest(logits, k) if k else np.arange(0)
    best = near[np.argsort(-logits[near], kind="stable")[:k]].tolist()

    def is_cut(of: int) -> bool | None:
        return None if kept is None else not bool(np.isin(of, kept))

    alternatives = tuple(
        Alternative(each, text, float(logits[each]) - normaliser, is_cut(each))
        for each, text in zip(best, texts_of(model, best), strict=True)
    )
    if token is None:
        return Score(None, "", None, None, entropy, None, alternatives)
    own = float(logits[token])
    rank = int(np.count_nonzero(logits > own))
    text = texts_of(model, [token])[0]
    return Score(token, text, own - normaliser, rank, entropy, is_cut(token), alternatives)


class _Cuts:
    """The tokens that sampling with given settings leaves."""

    def __init__(
        self, model: Model, settings: Mapping[str, Any], tokens: Sequence[int], prompt: int | None
    ) -> None:
        self._settings: SamplingSettings = parse_options(settings, model.vocabulary).sampling
        self._tokens = tokens
        prompt = len(tokens) if prompt is None else prompt
        self._history = TokenHistory(tokens[: min(prompt, 1)], model.vocabulary)
        self._adjustment = Adjustment(self._settings)
        self._prompt = prompt
        self._seen = min(prompt, 1)

    def kept(self, logits: np.ndarray, at: int) -> np.ndarray:
        """Return the tokens that may be drawn for a position; positions come in order."""
        while self._seen < at:
            if self._seen < self._prompt:
                self._history.everything.add(self._tokens[self._seen])
            else:
                self._history.add(self._tokens[self._seen])
            self._seen += 1
        scores = self._adjustment.scores(logits, self._history)
        if self._settings.temperature == 0:
            return np.array([greedy(scores, None)])
        return Candidates.of(scores, None).narrowed(self._settings).tokens()
