"""Samplers that requests name, in answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.model import Model
from tests.runners import CpuRunner, wait
from tests.sampling.test_steps import softmax

pytestmark = pytest.mark.torch

PROMPT = [5, 100, 7, 200, 31]
CHAT = [{"role": "user", "content": "tell me about it"}]


async def tokens_of(pieces: Any) -> list[int]:
    return [token async for piece in pieces for token in piece.token_ids]


@pytest.mark.parametrize("family", ["smollm2"])
def test_contrast_equals_two_models(family: str, toy_model: Path, cpu: CpuRunner) -> None:
    sampler = {"name": "contrast", "negative": "be brief", "strength": 2.0, "share": 0.1}

    async def run() -> None:
        model = await Model.load(cpu.device, str(toy_model))
        fields: dict[str, Any] = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
        found = await tokens_of(model.complete(PROMPT, sampler=sampler, **fields))
        again = await tokens_of(model.complete(PROMPT, sampler=sampler, **fields))
        other = model.prompt_tokens("be brief")
        answer: list[int] = []
        for _ in range(8):
            own, negative = [
                np.log(softmax((await model.prefill([*prompt, *answer])).astype(np.float64)))
                for prompt in (PROMPT, other)
            ]
            mixed = np.where(own < own.max() + np.log(0.1), -np.inf, 2 * own - negative)
            answer.append(int(mixed.argmax()))
        plain = await tokens_of(model.complete(PROMPT, **fields))
        assert found == again == answer
        assert plain != found
        said = await tokens_of(model.chat(CHAT, sampler=sampler, **fields))
        assert said != await tokens_of(model.chat(CHAT, **fields))
        model.unload()

    before = cpu.device.counters.buffer_bytes_alive
    wait(run())
    assert cpu.device.counters.buffer_bytes_alive == before


@pytest.mark.parametrize("name", ["typical", "mirostat", "dry", "xtc"])
def test_an_answer_by_each(name: str, toy_model: Path, cpu: CpuRunner) -> None:
    async def run() -> None:
        model = await Model.load(cpu.device, str(toy_model))
        fields: dict[str, Any] = {"max_tokens": 12, "ignore_eos": True, "seed": 3}
        found = [
            await tokens_of(model.complete(PROMPT, sampler=sampler, **fields))
            for sampler in ({"name": name}, [{"name": name}], [{"name": name}, {"name": "xtc"}])
        ]
        assert found[0] == found[1]
        assert all(len(each) == 12 for each in found)
        with pytest.raises(RequestError, match="there is no sampler 'wet'"):
            await tokens_of(model.complete(PROMPT, sampler={"name": "wet"}))
        model.unload()

    wait(run())
