"""The marks that families of models write around calls and thoughts: a row for each convention."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from py_runtime.chat.call_syntax import (
    GEMMA_QUOTE,
    SEPARATOR,
    Calls,
    Tools,
    deepseek_calls,
    gemma_calls,
    harmony_calls,
    json_calls,
    known_calls,
    mistral_calls,
    python_calls,
    tagged_calls,
)


@dataclass(frozen=True)
class Markers:
    """The markers of a call; one without an end ends at the next call or with the answer."""

    opener: str
    closer: str
    read: Callable[[str, Tools], Calls]
    is_first: bool = False  # only at the very beginning of an answer
    kept: int = 0  # characters of the opener that are the body's as well


@dataclass(frozen=True)
class Convention:
    """A way to write calls of tools."""

    known_by: tuple[str, ...]  # in a chat template: one of these
    calls: tuple[Markers, ...]
    forced: str  # what begins a call, where the model has to make one: JSON follows
    arguments: str = "arguments"  # what that JSON calls them
    silent: tuple[str, ...] = ()  # markers that say nothing
    inner: tuple[str, ...] = ()  # markers inside a call

    @property
    def markers(self) -> list[str]:
        around = [text for call in self.calls for text in (call.opener, call.closer)]
        return [*filter(None, around), *self.silent, *self.inner]


@dataclass(frozen=True)
class Thoughts:
    """A way to set reasoning apart from the answer."""

    opener: str
    closer: str
    known_by: str  # in a chat template, or as a token
    silent: tuple[str, ...] = ()

    @property
    def markers(self) -> list[str]:
        return [self.opener, self.closer, *self.silent]


JSON_IN_TAGS = Convention(
    known_by=("<tool_call>",),
    calls=(Markers("<tool_call>", "</tool_call>", json_calls),),
    forced="<tool_call>\n",
)

# The order matters: the first one that a template knows is taken.
CONVENTIONS = (
    Convention(  # Qwen3.5, Qwen3-Coder
        known_by=("<function=",),
        calls=(Markers("<tool_call>", "</tool_call>", tagged_calls),),
        forced="<tool_call>\n",
    ),
    JSON_IN_TAGS,  # Qwen2.5, Qwen3, Hermes, Granite since 3.1, SmolLM3
    Convention(  # Gemma 4
        known_by=("<|tool_call>",),
        calls=(Markers("<|tool_call>", "<tool_call|>", gemma_calls),),
        forced="<|tool_call>",
        inner=(GEMMA_QUOTE,),
    ),
    Convention(  # Mistral, Ministral
        known_by=("[TOOL_CALLS]",),
        calls=(Markers("[TOOL_CALLS]", "[TOOL_CALLS]", mistral_calls),),
        forced="[TOOL_CALLS]",
        inner=("[ARGS]", "[CALL_ID]"),
    ),
    Convention(
        known_by=("<|tool_call_start|>", "<|tool_list_start|>"),
        calls=(Markers("<|tool_call_start|>", "<|tool_call_end|>", python_calls),),
        forced="<|tool_call_start|>",
    ),
    Convention(  # gpt-oss
        known_by=("to=functions.",),
        calls=(Markers("<|channel|>commentary to=functions.", "<|call|>", harmony_calls),),
        forced="<|channel|>commentary <|constrain|>json<|message|>",
        inner=("<|constrain|>", "<|message|>"),
    ),
    Convention(  # DeepSeek
        known_by=("<｜tool▁call▁begin｜>",),  # noqa: RUF001
        calls=(Markers("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", deepseek_calls),),  # noqa: RUF001
        forced="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",  # noqa: RUF001
        silent=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),  # noqa: RUF001
        inner=(SEPARATOR,),
    ),
    Convention(  # Phi-4-mini, Granite 3.0
        known_by=("<|tool_call|>", "<|tool|>"),
        calls=(
            Markers("<|tool_call|>", "<|/tool_call|>", json_calls),
            Markers("functools[", "", json_calls, kept=1),
        ),
        forced="<|tool_call|>",
    ),
    Convention(  # Llama 3.1 to 3.3
        known_by=('"parameters"', "<|python_tag|>"),
        calls=(
            Markers("<|python_tag|>", "", known_calls),
            Markers("{", "", known_calls, is_first=True, kept=1),
        ),
        forced="",
        arguments="parameters",
    ),
)

THOUGHTS = (
    Thoughts("<think>", "</think>", known_by="</think>"),
    Thoughts("[THINK]", "[/THINK]", known_by="[/THINK]"),
    Thoughts("<|channel>thought\n", "<channel|>", known_by="<channel|>"),
    Thoughts(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        known_by="<|channel|>",
        silent=(
            "<|start|>assistant",
            "<|channel|>final<|message|>",
            "<|channel|>commentary<|message|>",
            "<|end|>",
        ),
    ),
)


def convention_of(template: str) -> Convention:
    """Return the convention of a chat template; one that names none gets the first."""
    found = (row for row in CONVENTIONS if any(mark in template for mark in row.known_by))
    return next(found, JSON_IN_TAGS)


def thoughts_of(template: str, tokens: Collection[str]) -> Thoughts | None:
    """Return how the template, or the vocabulary's control tokens, mark thoughts.

    None if nowhere.
    """
    found = (row for row in THOUGHTS if row.known_by in template or row.known_by in tokens)
    return next(found, None)
