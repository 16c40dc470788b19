"""Requests and answers in the shapes of OpenAI's API, as plain dictionaries."""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from py_runtime.app.answer_outcome import outcome
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import worded
from py_runtime.base.request_texts import refuse_half_pairs
from py_runtime.base.short_texts import short
from py_runtime.base.tool_call import ToolCall
from py_runtime.generation.options import take_bool, unknown_field
from py_runtime.generation.pieces import Piece, Usage
from py_runtime.sampling import SamplingSettings, TokenLogprob

if TYPE_CHECKING:
    from py_runtime.model import AnyModel, Model

STREAM_OPTIONS = ("include_usage", "include_progress")
MAX_ANSWERS = 16  # to one request, one after the other
NOT_FIELDS = ("cancel", "on_prefill")  # of a request: they are arguments of Model's methods
Json = dict[str, Any]


class Completion:
    """One request: what to run, and how its chunks and its answer look."""

    def __init__(self, model: "Model", given: Mapping[str, Any], is_chat: bool) -> None:
        refuse_half_pairs(given)
        fields = {name: value for name, value in given.items() if value is not None}
        self._model = model
        self._is_chat = is_chat
        self._id = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._started = time.perf_counter()
        self.stream = take_bool(fields, "stream")
        self._includes = _stream_options(fields.pop("stream_options", None), self.stream)
        check_model(model, fields.pop("model", None))
        self._count = _count(fields.pop("n", None))
        check_labels(fields.pop("user", None), fields.pop("metadata", None))
        for name in NOT_FIELDS:
            if name in fields:
                raise unknown_field(name)
        self._fields = fields
        self._chunk_head = self._head("chunk")

    def pieces(
        self, cancel: CancelToken, on_prefill: Callable[[int, int], None], index: int = 0
    ) -> AsyncIterator[Piece]:
        """Return the pieces of one answer; those after the first have seeds of their own."""
        fields = dict(self._fields)
        if index and isinstance(fields.get("seed"), int):
            fields["seed"] += index
        if self._is_chat:
            messages = fields.pop("messages", None)
            refuse_paths(messages)
            return self._model.chat(messages, cancel=cancel, on_prefill=on_prefill, **fields)
        prompt = self._prompt(fields.pop("prompt", None), fields.pop("prompt_token_ids", None))
        return self._model.complete(prompt, cancel=cancel, on_prefill=on_prefill, **fields)

    @staticmethod
    def _prompt(text: Any, token_ids: Any) -> str | list[int]:
        if (text is None) == (token_ids is None):
            raise RequestError("give either prompt or prompt_token_ids", "prompt")
        if text is None and not isinstance(token_ids, list):
            raise RequestError("prompt_token_ids must be a list of tokens", "prompt_token_ids")
        prompt: str | list[int] = token_ids if text is None else text
        return prompt

    # What goes out ------------------------------------------------------------------------------

    async def chunks(
        self, cancel: CancelToken, emit: Callable[[Json], None], is_compiling: bool = False
    ) -> None:
        """Emit every chunk of the stream as it comes.

        `is_compiling`: the answer waits for the model's pipelines first.
        """
        last: list[Piece] = []

        def tell(progress: Json) -> None:
            if "include_progress" in self._includes:
                emit({**self._chunk_head, "choices": [], "progress": progress})

        def on_prefill(done: int, total: int) -> None:
            tell({"prefilled": done, "total": total})

        if is_compiling:
            tell({"prefilled": 0, "total": 0, "compiling": True})

        for index in range(self._count):
            deltas = Deltas()
            async for piece in self.pieces(cancel, on_prefill, index):
                for choice in self._chunk_choices(index, piece, deltas):
                    emit({**self._chunk_head, "choices": [choice]})
                if piece.usage:
                    last.append(piece)
        if "include_usage" in self._includes:
            emit({**self._chunk_head, "choices": [], "usage": self._usage(last)})

    def _chunk_choices(self, index: int, piece: Piece, deltas: "Deltas") -> Iterator[Json]:
        """Yield a piece's choices: the first has the tokens, the last says how it ended."""
        parts = deltas.of(piece) if self._is_chat else [{"text": piece.text}]
        for at, part in enumerate(parts):
            reason = piece.finish_reason if at == len(parts) - 1 else None
            if at:
                yield {**self._choice(index, reason, (), ()), **part}
            else:
                yield {**self._choice(index, reason, piece.token_ids, piece.logprobs), **part}

    async def answer(self, cancel: CancelToken) -> Json:
        """Return the whole completion at once."""
        choices: list[Json] = []
        last: list[Piece] = []
        for index in range(self._count):
            whole = [piece async for piece in self.pieces(cancel, lambda done, total: None, index)]
            choice = self._choice(
                index,
                whole[-1].finish_reason,
                [token for piece in whole for token in piece.token_ids],
                [entry for piece in whole for entry in piece.logprobs],
            )
            text = "".join(piece.text for piece in whole)
            choices.append({**choice, **(message_json(whole) if self._is_chat else {"text": text})})
            last.append(whole[-1])
        return {**self._head(), "choices": choices, "usage": self._usage(last)}

    def _usage(self, last: list[Piece]) -> Json:
        """Return the usage of all answers together, from their last pieces."""
        usages = [piece.usage for piece in last if piece.usage is not None]
        together = replace(
            usages[0],
            completion_tokens=sum(usage.completion_tokens for usage in usages),
            reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
            proposed_tokens=sum(usage.proposed_tokens for usage in usages),
            accepted_tokens=sum(usage.accepted_tokens for usage in usages),
            drafted_tokens=sum(usage.drafted_tokens for usage in usages),
            accepted_drafted_tokens=sum(usage.accepted_drafted_tokens for usage in usages),
        )
        end = replace(last[-1], usage=together)
        messages = outcome(end, time.perf_counter() - self._started)
        return {**usage_json(together), "messages": messages, "summary": worded(messages)}

    def _head(self, suffix: str = "") -> Json:
        kind = "chat.completion" if self._is_chat else "text_completion"
        return {
            "id": self._id,
            "object": f"{kind}.{suffix}" if suffix and self._is_chat else kind,
            "created": self._created,
            "model": self._model.manifest.name,
        }

    def _choice(
        self,
        index: int,
        finish_reason: str | None,
        token_ids: Iterable[int],
        logprobs: Iterable[TokenLogprob],
    ) -> Json:
        content = [self._logprob_json(entry) for entry in logprobs]
        return {
            "index": index,
            "finish_reason": finish_reason,
            "token_ids": list(token_ids),
            "logprobs": {"content": content, "refusal": None} if content else None,
        }

    def _logprob_json(self, entry: TokenLogprob) -> Json:
        top = [self._token_json(token, logprob) for token, logprob in entry.top]
        return {**self._token_json(entry.token, entry.logprob), "top_logprobs": top}

    def _token_json(self, token: int, logprob: float) -> Json:
        text = self._model.tokenizer.decode([token], skip_special_tokens=False)
        return {"token": text, "token_id": token, "logprob": logprob, "bytes": None}


class Deltas:
    """The deltas that the chunks of one answer add to its message."""

    def __init__(self) -> None:
        self._has_begun = False
        self._calls = 0

    def of(self, piece: Piece) -> list[Json]:
        """Return a piece's deltas. A call takes two, as in OpenAI's: its name, its arguments."""
        deltas: list[Json] = []
        if piece.reasoning:
            deltas.append({"reasoning_content": piece.reasoning})
        if piece.text or not (piece.reasoning or piece.tool_calls):
            deltas.append({"content": piece.text})
        for call in piece.tool_calls:
            head = {"index": self._calls, **call_json(call, arguments="")}
            arguments = {"index": self._calls, "function": {"arguments": call.arguments}}
            deltas += [{"tool_calls": [head]}, {"tool_calls": [arguments]}]
            self._calls += 1
        if not self._has_begun:
            deltas[0] = {"role": "assistant", **deltas[0]}
            self._has_begun = True
        return [{"delta": delta} for delta in deltas]


def message_json(pieces: Iterable[Piece]) -> Json:
    """Return the message of an answer; its content is null where it only calls tools."""
    pieces = list(pieces)
    content = "".join(piece.text for piece in pieces)
    reasoning = "".join(piece.reasoning for piece in pieces)
    calls = [call_json(call, call.arguments) for piece in pieces for call in piece.tool_calls]
    shown = None if calls and not content else content
    message: Json = {"role": "assistant", "content": shown, "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return {"message": message}


def call_json(call: ToolCall, arguments: str) -> Json:
    """Return a call in OpenAI's shape."""
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def usage_json(usage: Usage) -> Json:
    """Return OpenAI's counts, and under `extra` what only this engine measures."""
    extra: Json = {
        "time_to_first_token_s": usage.time_to_first_token_s,
        "prefill_tokens_per_s": usage.prefill_tokens_per_s,
        "decode_tokens_per_s": usage.decode_tokens_per_s,
        "sampling": _sampling_json(usage.sampling),
    }
    if usage.work is not None:
        extra |= {f"{name}_per_token": value for name, value in asdict(usage.work).items()}
    if usage.images_s:
        extra["images_s"] = usage.images_s
    if usage.dropped_messages:
        extra["dropped_messages"] = usage.dropped_messages
    if usage.slid_tokens:
        extra["slid_tokens"] = usage.slid_tokens
    if usage.proposed_tokens:
        extra["drafted_tokens"] = usage.drafted_tokens
        extra["accepted_drafted_tokens"] = usage.accepted_drafted_tokens
    details: Json = {}
    if usage.reasoning_tokens:
        details["reasoning_tokens"] = usage.reasoning_tokens
    if usage.proposed_tokens:
        details["accepted_prediction_tokens"] = usage.accepted_tokens
        details["rejected_prediction_tokens"] = usage.proposed_tokens - usage.accepted_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        **({"completion_tokens_details": details} if details else {}),
        "extra": extra,
    }


def _sampling_json(settings: SamplingSettings) -> Json:
    """Return the settings in effect, and the seed, also where the request names none."""
    return {name: value for name, value in asdict(settings).items() if name != "logit_bias"}


def _count(given: Any) -> int:
    if given is None:
        return 1
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_ANSWERS:
        raise RequestError(f"n must be an integer from 1 to {MAX_ANSWERS}, got {given!r:.100}", "n")
    return given


def refuse_paths(messages: Any) -> None:
    """Refuse images by their paths: a request may come from anywhere, and files are this user's."""
    for at, given in enumerate(messages if isinstance(messages, list) else ()):
        content = given.get("content") if isinstance(given, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "image":
                raise RequestError(
                    f"messages[{at}].content: in a request, an image is a part of type image_url "
                    "with a data: address",
                    "messages",
                )


def check_model(model: "AnyModel", asked: Any) -> None:
    """Refuse a request that names another model; one that names none is for any."""
    if asked not in (None, model.manifest.name):
        raise RequestError(
            f"the loaded model is {model.manifest.name}, not {short(asked)}", "model"
        )


def check_labels(user: Any, metadata: Any) -> None:
    """Refuse labels of the wrong type; callers mark requests with them, nothing reads them."""
    if not isinstance(user, str | None):
        raise RequestError(f"user must be a text, got {user!r:.100}", "user")
    if metadata is None:
        return
    if not isinstance(metadata, dict) or not all(isinstance(x, str) for x in metadata.values()):
        raise RequestError("metadata must be an object of texts", "metadata")


def _stream_options(given: Any, stream: bool) -> frozenset[str]:
    if given is None:
        return frozenset()
    if not stream:
        raise RequestError("stream_options needs stream: true", "stream_options")
    if not isinstance(given, dict) or not given.keys() <= set(STREAM_OPTIONS):
        known = ", ".join(STREAM_OPTIONS)
        raise RequestError(f"stream_options must be an object of {known}", "stream_options")
    return frozenset(name for name in given if take_bool(dict(given), name))
