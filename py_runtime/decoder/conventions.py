"""Chat conventions as data: the marks that models write around calls of tools and around thoughts.

A family's file names those of its templates. py_runtime/chat reads answers by them; how the body of
a call is read has a function there for each name of a syntax.
"""

from dataclasses import dataclass

# How the body of a call is written.
JSON, KNOWN_JSON, TAGGED, PYTHON = "json", "json of known tools", "tagged", "python"
GEMMA, MISTRAL, DEEPSEEK, HARMONY = "gemma", "mistral", "deepseek", "harmony"


@dataclass(frozen=True)
class Markers:
    """The marks of a call; one without a closer ends where the next begins, or with the answer."""

    opener: str
    closer: str
    syntax: str
    is_first: bool = False  # only at the very beginning of an answer
    kept: int = 0  # characters of the opener that belong to the body as well


@dataclass(frozen=True)
class Convention:
    """A way to write calls of tools."""

    rank: int  # of the conventions that a template shows marks of, the lowest counts
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

    rank: int  # as of conventions
    opener: str
    closer: str
    known_by: str  # in a chat template, or as a token
    silent: tuple[str, ...] = ()

    @property
    def markers(self) -> list[str]:
        return [self.opener, self.closer, *self.silent]


# Several families write these.
JSON_IN_TAGS = Convention(
    rank=1,
    known_by=("<tool_call>",),
    calls=(Markers("<tool_call>", "</tool_call>", JSON),),
    forced="<tool_call>\n",
)
JSON_AFTER_TOKEN = Convention(
    rank=8,
    known_by=("<|tool_call|>", "<|tool|>"),
    calls=(
        Markers("<|tool_call|>", "<|/tool_call|>", JSON),
        Markers("functools[", "", JSON, kept=1),
    ),
    forced="<|tool_call|>",
)
THINK_TAGS = Thoughts(rank=0, opener="<think>", closer="</think>", known_by="</think>")
