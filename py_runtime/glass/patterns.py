"""Attention as numbers: scores and patterns from queries and the cache of keys."""

import numpy as np

from py_runtime.glass.anatomy import Attention
from py_runtime.graph import Graph


async def cached_rows(graph: Graph, cache: int, first: int, end: int) -> np.ndarray:
    """Return a cache's rows of these positions: f32 [end - first, heads, D]."""
    held = graph.live_dims(cache)[-3]
    rows: np.ndarray = (await graph.read(cache, end))[0].astype(np.float32)
    if end <= held:
        return rows[first:end]
    return rows[np.arange(first, end) % held]  # of a ring


class Pattern:
    """The attention of some tokens over all before them, as one layer computes it."""

    def __init__(
        self, attention: Attention, start: int, q: np.ndarray, keys: np.ndarray, first: int
    ) -> None:
        """q: [S, H, D], of the tokens from `start` on; keys: [T, K, D], from `first` on."""
        self._attention = attention
        self._start = start
        self._first = first  # no token sees anything before it
        tokens, heads, _ = q.shape
        self._group = heads // keys.shape[1]
        k = np.repeat(keys, self._group, axis=1)
        seen = np.matmul(q.transpose(1, 0, 2), k.transpose(1, 2, 0))  # [H, S, T]
        scores = seen * np.float32(attention.scale)
        if attention.softcap is not None:
            scores = np.tanh(scores / attention.softcap) * np.float32(attention.softcap)
        at = start + np.arange(tokens)[:, None]
        other = first + np.arange(len(keys))[None]
        hidden = other > at
        if attention.window is not None:
            hidden |= other <= at - attention.window
        scores[:, hidden] = -np.inf
        before = np.full((heads, tokens, first), -np.inf, np.float32)
        self.scores = np.concatenate([before, scores], axis=2)  # [H, S, start + S]

    @classmethod
    async def read(cls, graph: Graph, attention: Attention, start: int, q: np.ndarray) -> "Pattern":
        end = start + len(q)
        first = 0 if attention.window is None else max(0, start + 1 - attention.window)
        keys = await cached_rows(graph, attention.caches[0], first, end)
        return cls(attention, start, q, keys, first)

    def pattern(self, sinks: np.ndarray | None) -> np.ndarray:
        """Return what scores become: [H, S, T]; with sinks [H] they add up to less than 1."""
        scores = self.scores
        peak = scores.max(axis=-1, keepdims=True)
        if sinks is not None:
            peak = np.maximum(peak, sinks[:, None, None])
        weights = np.exp(scores - peak)
        total = weights.sum(axis=-1, keepdims=True)
        if sinks is not None:
            total = total + np.exp(sinks[:, None, None] - peak)
        return np.asarray(weights / total)

    async def mixed(self, graph: Graph, pattern: np.ndarray) -> np.ndarray:
        """Return what the values are mixed to by a pattern: [S, H, D]."""
        end = pattern.shape[-1]
        values = await cached_rows(graph, self._attention.caches[1], self._first, end)
        v = np.repeat(values, self._group, axis=1)
        out = np.matmul(pattern[:, :, self._first :], v.transpose(1, 0, 2))
        return np.asarray(out.transpose(1, 0, 2))


async def read_sinks(graph: Graph, attention: Attention) -> np.ndarray | None:
    """Return the learned logits of heads that see nothing, where a layer has them: f32 [H]."""
    return None if attention.sinks is None else await graph.read(attention.sinks)
