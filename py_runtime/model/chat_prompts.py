"""From messages to the tokens of a prompt, and from an answer's text to its parts."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py_runtime.base.errors import InputError
from py_runtime.chat.answer_reader import AnswerReader, ForcedCall, Parts, PartsReader
from py_runtime.chat.conventions import convention_of, thoughts_of
from py_runtime.chat.request import ChatRequest, in_plain_words
from py_runtime.chat.seams import Seams, unmark
from py_runtime.chat.template import ChatTemplate
from py_runtime.generation.pieces import Piece
from py_runtime.tokens import Tokenizer

TAIL = 16  # tokens at the end of a prompt, in which a template may begin thoughts


class ChatPrompts:
    """Of one model, whose template decides how everything is written."""

    def __init__(self, name: str, template: ChatTemplate | None, tokenizer: Tokenizer) -> None:
        self._name = name
        self._template = template
        self._tokenizer = tokenizer
        self._seams = Seams(tokenizer.control_tokens)
        source = template.source if template else ""
        self._knows_tools = "tools" in source
        self._convention = convention_of(source)
        self._thoughts = thoughts_of(source, tokenizer.control_tokens)

    def tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        asked: ChatRequest,
        allow_special: bool = False,
        continues: bool = False,
        most: int | None = None,
    ) -> list[int]:
        """The prompt that asks for the assistant's next message, or `continues` its last one.

        What spells a control token in a message is text, unless `allow_special`. Of a prompt with
        more than `most` tokens, the rest is left out.
        """
        if self._template is None:
            raise InputError(f"{self._name} has no chat template: use complete()")
        tools: Any = asked.tools or None
        turns = [dict(message) for message in messages]
        if not self._knows_tools:
            turns, tools = in_plain_words(turns, asked.tools), None
        variables: Any = asked.variables
        if not allow_special:
            turns = self._seams.mark(turns)
            tools, variables = self._seams.marked(tools), self._seams.marked(variables)
        # Not by the template, which would end the message.
        begun = turns.pop()["content"] if continues and turns[-1]["role"] == "assistant" else ""
        rendered = self._template.render(
            turns, add_generation_prompt=True, tools=tools, **variables
        )
        text, literal = unmark(rendered + begun + self._forced(asked, rendered))
        return self._tokenizer.encode(text, add_special_tokens=False, literal=literal, most=most)

    def _forced(self, asked: ChatRequest, rendered: str) -> str:
        """What begins a call that has to come: no thoughts before it."""
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
        """Control tokens that answers are read by, and so are not left out of their text."""
        markers = list(self._thoughts.markers) if self._thoughts else []
        markers += self._convention.markers if asked.tools else []
        return frozenset(
            token
            for token in self._tokenizer.control_tokens
            if any(token in marker for marker in markers)
        )

    def stops(self, asked: ChatRequest) -> tuple[str, ...]:
        """The end of a call, where there is to be one only."""
        if asked.is_parallel or not asked.tools or asked.forced:
            return ()
        calls = self._convention.calls
        return tuple(call.closer for call in calls if call.closer not in ("", call.opener))

    def response_format(self, asked: ChatRequest) -> Any:
        """The grammar of a call that has to come; None: whatever the request asks for."""
        if not asked.forced:
            return None
        schema = asked.schema(self._convention.arguments)
        return {"type": "json_schema", "json_schema": {"schema": schema}}

    def reader(
        self, asked: ChatRequest, prompt: Sequence[int], last: Mapping[str, Any] | None
    ) -> PartsReader | None:
        """None: the answer is its text. `last`: the message that the answer continues."""
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
        """The same tokens, with what their text means."""
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
