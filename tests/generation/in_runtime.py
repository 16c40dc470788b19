"""The toy model's answers, natively or in the page, on behalf of the tests here."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from py_runtime import gpu
from py_runtime.app.completions import Completion
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.chat.request import ChatRequest
from py_runtime.chat.template import ChatTemplate
from py_runtime.generation.messages import parse_messages
from py_runtime.generation.pace import BatchPace, PrefillPace
from py_runtime.generation.speculation import Speculation
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.chat_prompts import ChatPrompts

STOP_PATIENCE = 60  # seconds until it counts as never

Json = dict[str, Any]
_models: dict[tuple[int, str], Model] = {}


async def the_model(device: Device, where: str, keep_cache: bool = False) -> Model:
    """Return the model, loaded once for all tests; its session is empty unless it is kept."""
    key = (id(device), where)
    if key not in _models:
        _models[key] = await Model.load(device, where)
    model = _models[key]
    model._turn = asyncio.Lock()  # natively each case has an event loop of its own
    if not keep_cache:
        model.session.forget()
    return model


class FixedPace(PrefillPace):
    def took(self, tokens: int, seconds: float) -> None:
        pass

    def next_chunk(self) -> int:
        return self.largest


async def ask(
    device: Device, where: str, steps: list[Json], keep_cache: bool = False
) -> list[Json]:
    model = await the_model(device, where, keep_cache)
    return [await ask_model(model, **step) for step in steps]


async def ask_model(
    model: Model,
    fields: Json,
    messages: Any = None,
    prompt: Any = None,
    forget: bool = False,
    chunk: int = 64,
    cancel_at_chunk: int | None = None,
    cancel_at_piece: int | None = None,
    batches: BatchPace | None = None,
) -> Json:
    """Return an answer.

    `chunk` is the length of prefill's chunks, `forget` empties the cache first.
    """
    session, cancel = model.session, CancelToken()
    if forget:
        session.forget()
    session._pace, session.batches = FixedPace(chunk), batches or BatchPace()
    session.speculation = Speculation()
    computed = session.computed_tokens
    progress: list[list[int]] = []

    def on_prefill(done: int, total: int) -> None:
        progress.append([done, total])
        if len(progress) == cancel_at_chunk:
            cancel.cancel()

    given, method = (prompt, model.complete) if messages is None else (messages, model.chat)
    pieces = []
    try:
        async for piece in method(given, cancel=cancel, on_prefill=on_prefill, **fields):
            pieces.append(piece)
            if len(pieces) == cancel_at_piece:
                cancel.cancel()
    except InpageError as error:
        return {"error": {"code": error.code, "message": str(error), **error.facts()}}
    assert all(piece.finish_reason is None and piece.usage is None for piece in pieces[:-1])
    last = pieces[-1]
    assert last.usage is not None
    return {
        "text": "".join(piece.text for piece in pieces),
        "texts": [piece.text for piece in pieces],
        "tokens": [token for piece in pieces for token in piece.token_ids],
        "logprobs": [asdict(entry) for piece in pieces for entry in piece.logprobs],
        "finish_reason": last.finish_reason,
        "usage": asdict(last.usage),
        "computed": session.computed_tokens - computed,
        "progress": progress,
        "cache": list(session.tokens),
    }


async def encode(device: Device, where: str, chats: list[Any]) -> list[list[int]]:
    """Return the prompts of these chats."""
    model = await the_model(device, where)
    return [model.chat_tokens(messages) for messages in chats]


async def logits(device: Device, where: str, prompts: list[list[int]]) -> list[np.ndarray]:
    model = await the_model(device, where)
    return [await model.prefill(prompt) for prompt in prompts]


async def with_sampler(device: Device, where: str, allowed: list[int], fields: Json) -> Json:
    """Answer with a user's own Python function that picks the likeliest token of `allowed`."""
    model = await the_model(device, where)
    seen: list[list[int]] = []

    def sampler(logits: np.ndarray, tokens: list[int]) -> int:
        seen.append(tokens)
        return max(allowed, key=lambda token: float(logits[token]))

    answer = await ask_model(model, {**fields, "sampler": sampler}, prompt=[5, 6, 7])
    return {**answer, "seen": seen}


async def bad_sampler(device: Device, where: str, given: Any, fields: Json) -> Json:
    model = await the_model(device, where)
    return await ask_model(model, {**fields, "sampler": lambda *_: given}, prompt=[5])


async def leave_early(device: Device, where: str) -> Json:
    """Leave the loop after one piece; the next answer comes all the same."""
    model = await the_model(device, where)
    async for _ in model.complete([5, 6, 7], temperature=0, ignore_eos=True):
        break
    return await ask_model(model, {"temperature": 0, "max_tokens": 4}, prompt=[5, 6, 7])


async def completion(device: Device, where: str, is_chat: bool, fields: Json) -> Json:
    """Return the answer and the chunks of the same request, as a page would get them."""
    model = await the_model(device, where)
    try:
        answer = await Completion(model, fields, is_chat).answer(CancelToken())
        chunks: list[Json] = []
        options = {"include_usage": True, "include_progress": True}
        streaming = {**fields, "stream": True, "stream_options": options}
        model.session.forget()
        await Completion(model, streaming, is_chat).chunks(CancelToken(), chunks.append)
    except InpageError as error:
        return {"error": {"code": error.code, "message": str(error), **error.facts()}}
    return json.loads(json.dumps({"answer": answer, "chunks": chunks}))


async def written(device: Device, where: str, text: str, template: str, fields: Json) -> Json:
    """Answer with a model with this template that writes this text, token by token, and ends."""
    model = await the_model(device, where)
    tokens = [*model.tokenizer.encode(text, add_special_tokens=False), min(model.end_tokens)]
    place = 0

    def sampler(logits: np.ndarray, so_far: list[int]) -> int:
        nonlocal place
        place = 0 if len(so_far) == place_of_answer else place + 1
        return tokens[place]

    with another_template(model, template):
        place_of_answer = len(prompt_of(model, fields))
        return await completion(device, where, True, {**fields, "sampler": sampler})


async def templated(device: Device, where: str, template: str, fields: Json) -> Json:
    model = await the_model(device, where)
    with another_template(model, template):
        return await completion(device, where, True, fields)


async def prompt(device: Device, where: str, template: str, fields: Json) -> str:
    """Return the text that the model reads."""
    model = await the_model(device, where)
    with another_template(model, template):
        return model.tokenizer.decode(prompt_of(model, fields), skip_special_tokens=False)


def prompt_of(model: Model, fields: Json) -> list[int]:
    messages = parse_messages(fields["messages"])
    return model.prompts.tokens(messages, ChatRequest.take(dict(fields)))


@contextmanager
def another_template(model: Model, template: str) -> Iterator[None]:
    own = model.prompts
    model.prompts = ChatPrompts("Toy", ChatTemplate(template), model.tokenizer)
    try:
        yield
    finally:
        model.prompts = own


async def lose_the_device(device: Device, where: str, fields: Json) -> Json:
    """Destroy the device in the middle of an answer."""
    del device  # others still need it
    model = await Model.load(await gpu.request_device(), where)
    prompt = [5 + place % 200 for place in range(100)]
    undisturbed = await ask_model(model, fields, prompt=prompt, chunk=16, forget=True)
    model.session.forget()
    tokens: list[int] = []
    async for piece in model.complete(prompt, **fields):
        tokens += piece.token_ids
        if len(tokens) == 3:
            model.graph.device.destroy()
    afterwards = await ask_model(model, fields, prompt=prompt, chunk=16)
    model.unload()
    buffers = model.graph.device.counters.buffers_alive
    return {
        "undisturbed": undisturbed,
        "tokens": tokens,
        "afterwards": afterwards,
        "buffers": buffers,
    }


async def ask_cancelled(device: Device, where: str, prompt: list[int], fields: Json) -> list[Json]:
    model = await the_model(device, where)
    cancel = CancelToken()
    cancel.cancel()
    computed = model.session.computed_tokens
    pieces = [piece async for piece in model.complete(prompt, cancel=cancel, **fields)]
    computed = model.session.computed_tokens - computed
    return [{"finish_reason": piece.finish_reason, "computed": computed} for piece in pieces]


async def stop_while_computing(
    device: Device, where: str, prompt: list[int], fields: Json, during: str
) -> list[Json]:
    """Stop while the device computes, for ever as it seems; then ask again, with the real one."""
    model = await the_model(device, where)
    model.session.forget()
    cancel, computing = CancelToken(), asyncio.Event()
    name = {"prompt": "read_buffer", "answer": "submit_to_read"}[during]
    real, computed = getattr(device, name), []

    def never(*given: Any) -> asyncio.Future[Any]:
        computing.set()
        computed.append(asyncio.ensure_future(real(*given)))
        return asyncio.get_running_loop().create_future()

    async def answer(**given: Any) -> Json:
        async for piece in model.complete(prompt, **given, **fields):
            last = piece
        return {"finish_reason": last.finish_reason, "tokens": last.token_ids}

    setattr(device, name, never)
    try:
        stopped = asyncio.ensure_future(answer(cancel=cancel))
        await computing.wait()
        cancel.cancel()
        first = await asyncio.wait_for(stopped, STOP_PATIENCE)
    finally:
        delattr(device, name)
    await asyncio.wait(computed)
    return [first, await answer(), await answer()]


async def ask_while_busy(device: Device, where: str, prompt: list[int], fields: Json) -> Json:
    model = await the_model(device, where)
    cancel = CancelToken()
    ended: list[str] = []

    async def answer(name: str, **arguments: Any) -> Json:
        pieces = []
        async for piece in model.complete(prompt, **arguments, **fields):
            pieces.append(piece)
            await asyncio.sleep(0)  # natively a generation itself waits for nothing
        ended.append(name)
        return {
            "finish_reason": pieces[-1].finish_reason,
            "tokens": [token for piece in pieces for token in piece.token_ids],
        }

    def stop_the_other(done: int, total: int) -> None:
        cancel.cancel()

    busy, waiting = await asyncio.gather(
        answer("busy", on_prefill=stop_the_other), answer("waiting", cancel=cancel)
    )
    following = await answer("next")
    return {"busy": busy, "waiting": waiting, "next": following, "first_to_end": ended[0]}


async def ask_together(device: Device, where: str, prompts: list[Any], fields: Json) -> Json:
    model = await the_model(device, where)
    order: list[int] = []

    async def answer(number: int) -> Json:
        tokens: list[int] = []
        async for piece in model.complete(prompts[number], **fields):
            tokens += piece.token_ids
            order.extend([number] * len(piece.token_ids))
        return {"tokens": tokens}

    answers = await asyncio.gather(*map(answer, range(len(prompts))))
    return {"answers": answers, "order": order}
