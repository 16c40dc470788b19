"""Prompts from messages, and the parts of an answer from its text."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from py_runtime.base.errors import InputError, RequestError
from py_runtime.base.messages import message
from py_runtime.chat.answer_reader import AnswerReader, ForcedCall, Parts, PartsReader
from py_runtime.chat.content_spans import ContentSpan, find_contents, wrap_content
from py_runtime.chat.conventions import convention_of, thoughts_of
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.request import ChatRequest, in_plain_words
from py_runtime.chat.seams import Seams, unmark
from py_runtime.chat.template import ChatTemplate
from py_runtime.generation.options import GenerationOptions
from py_runtime.generation.pieces import Piece
from py_runtime.model.image_prompts import (
    ImagePrompts,
    in_parts,
    pictures_of,
    without_pictures,
)
from py_runtime.tokens import Tokenizer

TYPED = re.compile(r"""\[\s*['"]type['"]\s*\]|\.type\b""")  # a template that looks at parts
PROBE = "probe"
TAIL = 16  # tokens at the end of a prompt, in which a template may begin thoughts


@dataclass(frozen=True)
class ChatPrompt:
    """The prompt of a chat completion, and what the request asks for."""

    ids: list[int]
    dropped_messages: int  # the oldest but the system prompt, to make room
    asked: ChatRequest
    options: GenerationOptions


class ChatPrompts:
    """The prompts of one model, whose template decides how everything is written."""

    def __init__(
        self,
        name: str,
        template: ChatTemplate | None,
        tokenizer: Tokenizer,
        images: ImagePrompts | None = None,
    ) -> None:
        self._name = name
        self._images = images
        self._template = template
        self._tokenizer = tokenizer
        self._seams = Seams(tokenizer.control_tokens)
        source = template.source if template else ""
        self.knows_tools = "tools" in source
        self._convention = convention_of(source)
        self._thoughts = thoughts_of(source, tokenizer.control_tokens)

    def tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        asked: ChatRequest,
        allow_special: bool = False,
        continues: bool = False,
        begun: Sequence[int] = (),
        most: int | None = None,
    ) -> list[int]:
        """Return the prompt for the assistant's next message, or one that `continues` its last.

        `begun` are the tokens of that last message, in place of its content. Text in a message that
        spells a control token stays text, unless `allow_special`. A prompt with more than `most`
        tokens is cut off there.
        """
        rendered, rest = self._rendered(messages, asked, allow_special, continues)
        rest = "" if begun else rest
        text, literal = unmark(rendered + rest + self._forced(asked, rendered))
        ids = self._tokenizer.encode(text, add_special_tokens=False, literal=literal, most=most)
        if self._images is not None:
            ids = self._images.placed(ids, pictures_of(messages), most)
        return [*ids, *begun]

    def image_tokens(self, turn: Mapping[str, Any]) -> int:
        """Return how many tokens the images of a message take."""
        images = self._images
        return sum(map(images.count, pictures_of([turn]))) if images is not None else 0

    def _rendered(
        self,
        messages: Sequence[Mapping[str, Any]],
        asked: ChatRequest,
        allow_special: bool,
        continues: bool,
        wrap: Callable[[int, str], str] = lambda at, content: content,
    ) -> tuple[str, str]:
        """Return the template's text, and that of the message to continue; both have marks.

        `wrap` changes the content of each message first.
        """
        if self._template is None:
            raise InputError(f"{self._name} has no chat template: use complete()")
        tools: Any = asked.tools or None
        pictures = pictures_of(messages)
        if pictures and self._images is None:
            raise RequestError(message("model_cannot_see", name=self._name), "messages")
        turns = without_pictures(messages)
        if not self.knows_tools:
            turns, tools = in_plain_words(turns, asked.tools), None
        variables: Any = asked.variables
        if not allow_special:
            turns = self._seams.mark(turns)
            tools, variables = self._seams.mark_value(tools), self._seams.mark_value(variables)
        for at, turn in enumerate(turns):
            turn["content"] = wrap(at, turn["content"])
        # Not by the template, which would end the message.
        begun = turns.pop()["content"] if continues and turns[-1]["role"] == "assistant" else ""
        for turn in turns:
            content = turn["content"]
            if self._takes_parts:
                turn["content"] = in_parts(content)
            elif self._images is not None:
                turn["content"] = self._images.in_words(content)
        rendered = self._template.render(
            turns, add_generation_prompt=True, tools=tools, **variables
        )
        if self._images is not None:
            rendered = self._images.written(rendered, pictures)
        return rendered, begun

    @cached_property
    def _takes_parts(self) -> bool:
        """Tell whether the template wants lists of parts as contents, and skips plain texts."""
        assert self._template is not None, "whoever renders has one"
        if not TYPED.search(self._template.source):
            return False
        if self._images is not None:
            return True
        try:
            return PROBE not in self._template.render([{"role": "user", "content": PROBE}])
        except ChatTemplateError:
            return True

    def contents(
        self,
        messages: Sequence[Mapping[str, Any]],
        asked: ChatRequest,
        allow_special: bool = False,
        continues: bool = False,
    ) -> tuple[str, list[ContentSpan]]:
        """Return the prompt's text, and where in it the contents of messages are.

        None are found where the template changes contents, or writes by what they begin with.
        """
        plain = "".join(self._rendered(messages, asked, allow_special, continues))
        wrapped = "".join(self._rendered(messages, asked, allow_special, continues, wrap_content))
        text, _ = unmark(plain)
        found, spans = find_contents(unmark(wrapped)[0])
        return text, spans if found == text else []

    def _forced(self, asked: ChatRequest, rendered: str) -> str:
        """Return the beginning of a required call, which comes without reasoning before it."""
        if not asked.forced:
            return ""
        thoughts = self._thoughts
        ended = f"\n{thoughts.closer}\n\n" if thoughts and self._begins_thoughts(rendered) else ""
        return ended + self._convention.forced

    def _begins_thoughts(self, text: str) -> bool:
        thoughts = self._thoughts
        return thoughts is not None and text.rstrip().endswith(thoughts.opener.rstrip())

    # Answers -----------------------------------------------------------------------------------

    def shown_tokens(self, asked: ChatRequest) -> frozenset[str]:
        """Return the control tokens by which answers are read, so they are kept in the text."""
        markers = list(self._thoughts.markers) if self._thoughts else []
        markers += self._convention.markers if asked.tools else []
        return frozenset(
            token
            for token in self._tokenizer.control_tokens
            if any(token in marker for marker in markers)
        )

    def stops(self, asked: ChatRequest) -> tuple[str, ...]:
        """Return the end of a call as a stop string if only one call is allowed."""
        if asked.is_parallel or not asked.tools or asked.forced:
            return ()
        calls = self._convention.calls
        return tuple(call.closer for call in calls if call.closer not in ("", call.opener))

    def response_format(self, asked: ChatRequest) -> Any:
        """Return the grammar of a required call; None leaves the request's own format."""
        if not asked.forced:
            return None
        schema = asked.schema(self._convention.arguments)
        return {"type": "json_schema", "json_schema": {"schema": schema}}

    def reader(
        self, asked: ChatRequest, prompt: Sequence[int], last: Mapping[str, Any] | None
    ) -> PartsReader | None:
        """Return a reader of the answer, or None if it is plain text.

        `last` is the message that the answer continues.
        """
        if asked.forced:
            return ForcedCall()
        thoughts = self._thoughts if asked.splits_reasoning else None
        convention = self._convention if asked.tools else None
        if thoughts is None and convention is None:
            return None
        tail = self._tokenizer.decode(prompt[-TAIL:], skip_special_tokens=False)
        is_thinking = thoughts is not None and self._begins_thoughts(tail)
        if thoughts and last is not None:
            text = last["content"]
            is_thinking |= text.rfind(thoughts.opener) > text.rfind(thoughts.closer)
        return AnswerReader(thoughts, convention, asked.schemas, is_thinking, asked.is_parallel)

    async def read(
        self, pieces: AsyncIterator[Piece], reader: PartsReader | None
    ) -> AsyncIterator[Piece]:
        """Yield the same tokens, with the meaning of their text."""
        whole = Parts()
        async for piece in pieces:
            if reader is None:
                yield piece
                continue
            parts = reader.push(piece.text)
            if piece.finish_reason is not None:
                parts += reader.finish()
            whole += parts
            if piece.usage is not None and whole.reasoning:
                thoughts = self._tokenizer.encode(whole.reasoning, add_special_tokens=False)
                piece.usage.reasoning_tokens = len(thoughts)
            is_call = whole.calls and piece.finish_reason == "stop"
            yield replace(
                piece,
                text=parts.content,
                reasoning=parts.reasoning,
                tool_calls=tuple(parts.calls),
                finish_reason="tool_calls" if is_call else piece.finish_reason,
            )
