"""Warm-ups of the toy model, natively, on behalf of test_warm_up.py."""

import asyncio
from typing import Any

from py_runtime import gpu
from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import GraphError, InpageError
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.model import Model
from tests.generation.in_runtime import ask_model

Json = dict[str, Any]
FIELDS = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
PROMPT = [5 + place % 200 for place in range(40)]


async def warm_up(device: Device, where: str, ask_first: bool) -> Json:
    """Warm up a model whose pipelines still compile, with an answer beside or after it."""
    del device  # it has the pipelines already
    model = await Model.load(await gpu.request_device(), where, compile_later=True)
    steps: list[str] = []
    for name in ("_warm_template", "_warm_prefill", "_warm_decode"):
        setattr(model, name, _telling(getattr(model, name), steps))
    warming = asyncio.ensure_future(model.warm_up(CancelToken()))
    await asyncio.sleep(0)  # it has its turn
    if not ask_first:
        await warming
    session = {
        "tokens": list(model.session.tokens),
        "computed_tokens": model.session.computed_tokens,
        "waited_s": model.session.waited_s,
    }
    asked = asyncio.ensure_future(ask_model(model, FIELDS, prompt=PROMPT))
    await warming
    pipelines = len(model.graph.device._pipelines)
    answer = await asked
    undisturbed = await ask_model(model, FIELDS, prompt=PROMPT, forget=True)
    made = len(model.graph.device._pipelines) - pipelines
    model.unload()
    model.graph.device.destroy()
    return {
        "steps": steps,
        "session": session,
        "pipelines_made_by_the_answer": made,
        "answer": {**answer, "undisturbed": undisturbed["tokens"]},
    }


def _telling(step: Any, steps: list[str]) -> Any:
    """Return a step, a coroutine function or not, that writes down its name."""

    def told(*arguments: Any) -> Any:
        steps.append(step.__name__)
        return step(*arguments)

    return told


async def stop_the_warm_up(device: Device, where: str) -> Json:
    before = device.counters.buffers_alive
    model = await Model.load(device, where, compile_later=True)
    cancel = CancelToken()
    warming = asyncio.ensure_future(model.warm_up(cancel))
    await asyncio.sleep(0)
    cancel.cancel()
    (outcome,) = await asyncio.gather(warming, return_exceptions=True)
    tokens = list(model.session.tokens)
    model.unload()
    assert isinstance(outcome, InpageError)
    return {
        "code": outcome.code,
        "tokens": tokens,
        "buffers": device.counters.buffers_alive - before,
    }


async def lose_the_device_while_warming_up(device: Device, where: str) -> Json:
    own = await gpu.request_device()
    model = await Model.load(own, where, compile_later=True)
    kinds: list[str] = []
    listening_ends = notices.listen(lambda notice: kinds.append(notice["kind"]))
    warming = asyncio.ensure_future(model.warm_up(CancelToken()))
    await asyncio.sleep(0)
    own.destroy()
    await warming
    listening_ends()
    tokens = list(model.session.tokens)
    is_another = model.graph.device is not own
    model.unload()
    model.graph.device.destroy()
    return {"kinds": kinds, "tokens": tokens, "is_another": is_another}


async def compile_in_vain(device: Device, where: str) -> Json:
    async def fail(self: Graph, meter: object) -> None:
        raise GraphError("broken on purpose")

    before = device.counters.buffers_alive
    original, Graph._create_plan = Graph._create_plan, fail  # type: ignore[method-assign]
    try:
        try:
            await Model.load(device, where)
        except GraphError as error:
            at_load = str(error)
        model = await Model.load(device, where, compile_later=True)
        answers = [await ask_model(model, FIELDS, prompt=PROMPT) for _ in range(2)]
    finally:
        Graph._create_plan = original  # type: ignore[method-assign]
    model.unload()
    return {
        "load": at_load,
        "answers": [answer["error"]["message"] for answer in answers],
        "buffers": device.counters.buffers_alive - before,
    }
