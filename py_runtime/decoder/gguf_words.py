"""GGUF keys in the words of a config.json: what several families take from a file in the same way.

The file of a family has a function for what it alone takes. Files leave out what llama.cpp knows by
the architecture's name: periods, windows, scales.
"""

from collections.abc import Callable
from typing import Protocol

from py_runtime.decoder.limits import MAX_CONTEXT, MAX_EXPERTS, MAX_HIDDEN, MAX_USED
from py_runtime.decoder.words import FULL, SLIDING, Words

WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"


class GgufKeys(Protocol):
    """The keys of a file's architecture, each asked for within bounds (py_runtime/gguf/keys.py)."""

    def __contains__(self, key: str) -> bool: ...

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int: ...

    def integers(
        self, key: str, layers: int, least: int, most: int, default: int | None = None
    ) -> list[int]: ...

    def number(
        self, key: str, least: float, most: float, default: float | None = None
    ) -> float: ...

    def pattern(self, key: str, layers: int, default: int) -> list[bool]: ...

    def flag(self, key: str, default: bool) -> bool: ...

    def fault(self, key: str, text: str) -> Exception: ...

    def unsupported(self, key: str, text: str) -> Exception: ...


# From a file's keys, the sizes that every file has, and its rotary parameters (which may be changed
# in place) to further words.
WordsFromKeys = Callable[[GgufKeys, Words, Words], Words]


def window(keys: GgufKeys, default: int) -> int:
    """Return how many positions a token sees; 0: all before it."""
    return keys.integer(WINDOW, 0, MAX_CONTEXT, default=default)


def no_windows(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Shorten the context to a window: whether the file means it, full attention cannot tell."""
    longest = values["max_position_embeddings"]
    return {"max_position_embeddings": min(longest, window(keys, 0) or MAX_CONTEXT)}


def windows_everywhere(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the window of all layers, where the file has one."""
    found = window(keys, 0)
    return {"sliding_window": found} if found else {}


def layer_types(keys: GgufKeys, values: Words, period: int) -> list[str]:
    """Return which layers slide; where the file leaves it out, all but the last of a period."""
    slides = keys.pattern(PATTERN, values["num_hidden_layers"], period)
    return [SLIDING if each else FULL for each in slides]


def routing(keys: GgufKeys) -> Words:
    """Return how many experts there are, and how many of them a token uses.

    The shares of those used add up to 1, which files do not say.
    """
    experts = keys.integer("expert_count", 1, MAX_EXPERTS)
    return {
        "num_local_experts": experts,
        "num_experts_per_tok": keys.integer("expert_used_count", 1, min(experts, MAX_USED)),
        "norm_topk_prob": True,
    }


def experts(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the routing, and the width that experts have of their own."""
    hidden = keys.integer("expert_feed_forward_length", 1, MAX_HIDDEN)
    return {**routing(keys), "moe_intermediate_size": hidden}
