"""The pieces that a generation yields."""

from dataclasses import dataclass, field

from py_runtime.base.tool_call import ToolCall
from py_runtime.sampling import SamplingSettings, TokenLogprob


@dataclass(frozen=True)
class Drawn:
    """A token of an answer; `is_last` if a grammar allows no other after it."""

    token: int
    logprobs: tuple[TokenLogprob, ...] = ()
    is_last: bool = False


@dataclass(frozen=True)
class Work:
    """The average cost of a token after the first."""

    dispatches: float
    submits: float  # each is one call across the bridge
    bytes_written: float
    bytes_read: float
    python_ms: float | None  # not known where the host chooses tokens
    submitting_ms: float  # JavaScript's: encoding the commands of a submit


@dataclass
class Usage:
    """Counts and times of one answer; a time is None until it is known."""

    prompt_tokens: int
    cached_tokens: int  # of the prompt, found in the cache
    completion_tokens: int = 0
    dropped_messages: int = 0  # the oldest, to make room
    slid_tokens: int = 0  # of prompt and answer, to go on in a full context
    fills_context: bool = False  # prompt and answer together: there is no room for more
    time_to_first_token_s: float | None = None
    images_s: float = 0.0  # of that, for what images become
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    work: Work | None = None  # of decoding, by token
    proposed_tokens: int = 0  # that were verified together with others
    accepted_tokens: int = 0  # of those, part of the answer
    drafted_tokens: int = 0  # of those that were proposed, by a draft or a head
    accepted_drafted_tokens: int = 0  # of these, those that came true
    reasoning_tokens: int = 0  # of the completion, about
    sampling: SamplingSettings = field(default_factory=SamplingSettings)  # with the seed used


@dataclass(frozen=True)
class Piece:
    """Some tokens of an answer; the last piece has a finish_reason and the usage."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: str | None = None  # "stop", "length", "abort" or "tool_calls"
    usage: Usage | None = None
    reasoning: str = ""  # what the model thinks, where that is told apart from the text
    tool_calls: tuple[ToolCall, ...] = ()  # that are whole with these tokens
