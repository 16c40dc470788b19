"""Chats that outgrow the context: the oldest turns go, the system prompt stays."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from py_runtime.base.errors import ContextLengthError, most_counted
from py_runtime.generation.messages import Message
from py_runtime.generation.options import ERROR, GenerationOptions

MAX_RESERVED = 512  # tokens kept free for the answer
KEPT_SHARE = 0.5  # of the room, once it is full: so the cache is rebuilt seldom, not every turn
QUESTION: Message = {"role": "user", "content": ""}
ANSWER: Message = {"role": "assistant", "content": ""}

EncodeChat = Callable[[Sequence[Message]], list[int]]
EncodeText = Callable[[str], list[int]]
CountTokens = Callable[[Message], int]


def no_images(message: Message) -> int:
    """Return what the images of a message take where there are none."""
    return 0


def fit_messages(
    messages: list[Message],
    encode_chat: EncodeChat,
    encode_text: EncodeText,
    context: int,
    options: GenerationOptions,
    image_tokens: CountTokens = no_images,
) -> tuple[list[int], int]:
    """Return the prompt and how many messages were left out; ContextLengthError if none fits."""
    prompt = encode_chat(messages)
    system = messages[:1] if messages[0]["role"] == "system" else []
    turns = split_turns(messages[len(system) :])
    # An answer that goes on may slide out of the context itself.
    may_slide = options.slides and options.continue_final_message
    longest = most_counted(context) if may_slide else context
    if len(turns) < 2 and len(prompt) >= longest:
        raise ContextLengthError(len(prompt), context, is_one_turn=True)
    if options.context_overflow == ERROR:
        return prompt, 0  # a prompt that is too long is refused later
    room = context - min(options.max_tokens or MAX_RESERVED, MAX_RESERVED, context // 4)
    if len(prompt) <= room:
        return prompt, 0
    base = len(encode_chat([*system, QUESTION]))
    pair = len(encode_chat([*system, QUESTION, ANSWER, QUESTION])) - base
    overhead = pair // 2 + 1  # tokens that the template puts around a message, or a few more
    sizes = [TurnSize.of(turn, encode_text, overhead, image_tokens) for turn in turns]
    first, step = first_kept_turn(base, sizes, room), 1
    while first < len(turns):
        kept = [*system, *(message for turn in turns[first:] for message in turn)]
        prompt = encode_chat(kept)
        if len(prompt) <= room or (first == len(turns) - 1 and len(prompt) < longest):
            return prompt, len(messages) - len(kept)
        # Ever more of them: a template that writes much between the turns is not rendered for each.
        first, step = max(first + 1, min(first + step, len(turns) - 1)), 2 * step
    raise ContextLengthError(len(prompt), context, is_one_turn=True)


def beginning(messages: list[Message], encode_chat: EncodeChat, prompt: Sequence[int]) -> int:
    """Return how many first tokens of a prompt belong to no turn: those of the system prompt."""
    system = messages[:1] if messages[0]["role"] == "system" else []
    head = encode_chat([*system, QUESTION])
    pairs = enumerate(zip(head, prompt, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(head), len(prompt)))


def split_turns(messages: list[Message]) -> list[list[Message]]:
    """Split a chat into turns: a user's message and everything up to the next one."""
    turns: list[list[Message]] = []
    for message in messages:
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


@dataclass(frozen=True)
class TurnSize:
    """The estimated tokens of a question and its answer."""

    asked: int  # tokens, about, while its answer was not there yet
    answered: int  # with all of it

    @classmethod
    def of(
        cls,
        turn: list[Message],
        encode_text: EncodeText,
        overhead: int,
        image_tokens: CountTokens,
    ) -> "TurnSize":
        sizes = [
            len(encode_text(text_of(message))) + overhead + image_tokens(message)
            for message in turn
        ]
        is_answered = turn[-1]["role"] == "assistant"
        return cls(sum(sizes[:-1]) if is_answered else sum(sizes), sum(sizes))


def text_of(message: Message) -> str:
    """Return all of a message that templates write."""
    calls = message.get("tool_calls")
    return f"{message['content']}{json.dumps(calls)}" if calls else str(message["content"])


def first_kept_turn(base: int, sizes: list[TurnSize], room: int) -> int:
    """Return the first turn to keep, found by replaying the chat from its start.

    A call sees only the messages so far, so the same choice must come out turn after turn: turns
    are dropped when the room is full, down to a share of it, and not again until it is full again.
    """
    first = 0
    history = base  # tokens of a prompt before its last turn
    for last, size in enumerate(sizes):
        if history + size.asked > room:
            while first < last and history + size.asked > room * KEPT_SHARE:
                history -= sizes[first].answered
                first += 1
        history += size.answered
    return first
