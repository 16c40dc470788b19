"""Activation patching: where in a model it is decided which of two answers comes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.glass.given import texts_of, tokens_of
from py_runtime.glass.hooked import HookedGraph, load_hooked
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.slots import NOWHERE, Wanted
from py_runtime.glass.views.common import Data, Progress, checked_places, ignore
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph.carried_states import carried_states
from py_runtime.model import Model

SITES = ("resid_pre", "attn_out", "mlp_out")
LOGITS = 0


async def patch(
    model: Model,
    clean: Any,
    corrupted: Any,
    answers: Sequence[Any],
    *,
    sites: Sequence[str] = SITES,
    positions: Any = None,
    progress: Progress = ignore,
    cancel: CancelToken | None = None,
) -> Data:
    """Run the corrupted text with one activation of the clean one at a time.

    `answers` are two tokens, or texts that are one: what the clean text calls for, and what the
    other one does. effects [layers, positions] of each site say how much of the difference of their
    logits comes back: 0 is as corrupted, 1 as clean.
    """
    cancel = cancel or CancelToken()
    two = _answer_tokens(model, answers)
    texts = tokens_of(model, clean), tokens_of(model, corrupted)
    if len(texts[0]) != len(texts[1]):
        raise RequestError(
            f"the two texts have {len(texts[0])} and {len(texts[1])} tokens; to move an activation "
            "from one to the other, they must have equally many",
            "corrupted",
        )
    if len(texts[0]) > model.max_chunk:
        raise RequestError(f"the texts may have {model.max_chunk} tokens at most", "clean")
    places = checked_places(positions, len(texts[0]), "positions")
    run = _Patching(model, texts, two, list(sites), places, progress, cancel)
    return await run.data()


def _answer_tokens(model: Model, answers: Sequence[Any]) -> list[int]:
    found = []
    for each in answers:
        tokens = model.tokenizer.encode(each, False) if isinstance(each, str) else [each]
        if len(tokens) != 1:
            raise RequestError(
                f"the answer {each!r:.50} is {len(tokens)} tokens; take its first one", "answers"
            )
        found += model.prompt_tokens(tokens)
    if len(found) != 2 or found[0] == found[1]:
        raise RequestError("answers are two different tokens", "answers")
    return found


class _Patching:
    def __init__(
        self,
        model: Model,
        texts: tuple[list[int], list[int]],
        answers: list[int],
        sites: list[str],
        places: list[int],
        progress: Progress,
        cancel: CancelToken,
    ) -> None:
        self._model = model
        self._clean, self._corrupted = texts
        self._answers = answers
        self._places = places
        self._progress = progress
        self._cancel = cancel
        self._space = space = Workspace.of(model)
        self._layers = len(space.anatomy.blocks)
        self._names: dict[str, list[str | None]] = {}
        for site in sites:
            names = [self._name(site, layer) for layer in range(self._layers)]
            if not any(names):
                raise RequestError(f"no layer has a hook for {site!r:.50}", "sites")
            self._names[site] = names

    def _name(self, site: str, layer: int) -> str | None:
        options = [f"blocks.{layer}.hook_{site}"]
        if site == "attn_out":
            options.append(f"blocks.{layer}.hook_mixer_out")
        return next((name for name in options if name in self._space.points), None)

    async def data(self) -> Data:
        wanted = [name for names in self._names.values() for name in names if name is not None]
        model, cancel = self._model, self._cancel
        logits, cache = await run_with_cache(model, self._clean, wanted, cancel=cancel)
        assert logits is not None
        clean = self._difference(logits[0, -1])
        values = {name: self._space.points[name].value for name in wanted}
        slots = [Wanted(value) for value in dict.fromkeys(values.values())]
        effects: dict[str, np.ndarray] = {}
        corrupted = 0.0

        async def compute() -> None:
            nonlocal effects, corrupted
            hooked = await load_hooked(model, self._space, (), slots)
            corrupted = await self._run(hooked, 0)
            effects = {
                site: np.full((self._layers, len(self._places)), np.nan, np.float32)
                for site in self._names
            }
            by_value = {slot.value: slot for slot in hooked.slots}
            done, total = 0, len(wanted) * len(self._places)
            # What lies before a position is not computed again: the last ones come first.
            can_resume = not carried_states(hooked.graph.program)
            for column in np.argsort(self._places)[::-1].tolist():
                place = self._places[column]
                for site, names in self._names.items():
                    for layer, name in enumerate(names):
                        if name is None:
                            continue
                        cancel.check()
                        slot = by_value[values[name]]
                        row = cache[name][0, place].reshape(1, -1)
                        span = (place, place + 1)
                        writes = slot.writes(hooked.graph, np.zeros_like(row), row, span)
                        hooked.graph.device.submit(None, None, writes)
                        patched = await self._run(hooked, place if can_resume else 0)
                        off = slot.reach(hooked.graph, NOWHERE)
                        hooked.graph.device.submit(None, None, [off])
                        effects[site][layer, column] = patched
                        done += 1
                        self._progress(done, total)

        async with looking(model, cancel):
            await model.session.device.survive(compute, cancel)
        span = clean - corrupted
        scale = span if abs(span) > 1e-6 else float("nan")
        return {
            "clean": {"tokens": self._clean, "texts": texts_of(model, self._clean)},
            "corrupted": {"tokens": self._corrupted, "texts": texts_of(model, self._corrupted)},
            "answers": {"tokens": self._answers, "texts": texts_of(model, self._answers)},
            "positions": self._places,
            "difference": {"clean": clean, "corrupted": corrupted},
            "effects": {site: (each - corrupted) / scale for site, each in effects.items()},
            "differences": effects,
        }

    async def _run(self, hooked: HookedGraph, start: int) -> float:
        inputs = await self._model.session.inputs(self._corrupted[start:], start)
        (logits,) = await hooked.graph.run(inputs, [LOGITS])
        return self._difference(logits[0])

    def _difference(self, logits: np.ndarray) -> float:
        first, second = self._answers
        return float(logits[first]) - float(logits[second])
