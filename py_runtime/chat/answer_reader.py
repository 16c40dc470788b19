"""A reader that splits an answer as it is written: content, thoughts, and calls of tools.

A call is reported once it is whole: one that cannot be read is text like any other, and nothing
that was reported can be taken back. Until then nothing of it is shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from py_runtime.base.tool_call import ToolCall
from py_runtime.chat.call_syntax import READERS, Tools, json_calls
from py_runtime.decoder.conventions import Convention, Markers, Thoughts
from py_runtime.sampling.stop_strings import held_back

# Reading a call takes as long as it is, and so does finding that it is none. Models that repeat
# themselves write thousands of those; after so many, calls are text like any other.
MAX_UNREADABLE = 100
PIECE = 4096  # characters of what is read anew at a time


@dataclass
class Parts:
    """The parts that a piece adds to an answer."""

    content: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)

    def __iadd__(self, more: "Parts") -> "Parts":
        self.content += more.content
        self.reasoning += more.reasoning
        self.calls += more.calls
        return self


class PartsReader(Protocol):
    """A reader that splits an answer into its parts."""

    def push(self, text: str) -> Parts: ...

    def finish(self) -> Parts: ...


class ForcedCall:
    """An answer that is nothing but the JSON of a call: a grammar made sure of that."""

    def __init__(self) -> None:
        self._text = ""

    def push(self, text: str) -> Parts:
        self._text += text
        return Parts()

    def finish(self) -> Parts:
        calls = json_calls(self._text, {})
        return Parts(calls=calls) if calls else Parts(self._text)  # it was stopped


class AnswerReader:
    """A reader that is in one of three places: the answer itself, thoughts, or a call."""

    def __init__(
        self,
        thoughts: Thoughts | None,
        convention: Convention | None,
        tools: Tools,
        is_thinking: bool = False,
        is_parallel: bool = True,
    ) -> None:
        self._thoughts = thoughts
        self._openers = {call.opener: call for call in convention.calls} if convention else {}
        rows: list[Thoughts | Convention] = [row for row in (thoughts, convention) if row]
        self._silent = {text for row in rows for text in row.silent}
        self._tools = tools
        self._is_thinking = is_thinking
        self._is_parallel = is_parallel
        self._rest = ""  # not told yet
        self._space = ""  # at the end of what was told: before a marker, it says nothing
        self._is_fresh = is_thinking  # what comes next begins after a marker
        self._has_content = False
        self._has_calls = False
        self._call: Markers | None = None  # whose body is in `_rest`
        self._tried = 0  # characters of the body in which no end was found
        self._unreadable = 0  # bodies so far

    def push(self, text: str) -> Parts:
        self._rest += text
        parts = Parts()
        self._read_on(parts)
        return parts

    def finish(self) -> Parts:
        """Return the rest, with what was held back; a call that is not whole is text."""
        parts = Parts()
        self._read_on(parts)
        while self._call:
            if not self._tell_calls(parts, len(self._rest), len(self._rest)):
                self._take_back(parts)
        self._say(parts, self._rest)
        self._rest = ""
        if not self._has_calls and not self._is_thinking:
            parts.content += self._space
        return parts

    def _read_on(self, parts: Parts) -> None:
        while self._rest and (self._read_call(parts) if self._call else self._read_text(parts)):
            pass

    # In the answer, or in thoughts -------------------------------------------------------------

    def _read_text(self, parts: Parts) -> bool:
        """Read up to the next marker; return whether there was one."""
        markers = self._markers()
        found = [(self._rest.find(marker), -len(marker), marker) for marker in markers]
        at, _, marker = min((each for each in found if each[0] >= 0), default=(-1, 0, ""))
        if at < 0:
            shown = len(self._rest) - held_back(self._rest, markers)
            self._say(parts, self._rest[:shown])
            self._rest = self._rest[shown:]
            return False
        self._say(parts, self._rest[:at])
        self._rest = self._rest[at + len(marker) :]
        if not self._is_thinking and marker in self._openers:
            self._begin_call(self._openers[marker])
        elif self._is_thinking or marker not in self._silent:
            self._is_thinking = not self._is_thinking
        self._space, self._is_fresh = "", True
        return True

    def _markers(self) -> Iterable[str]:
        """Return the markers that mean something here."""
        if self._is_thinking:
            assert self._thoughts, "nothing else begins thoughts"
            return [self._thoughts.closer]
        openers = [
            call.opener
            for call in self._openers.values()
            if self._unreadable < MAX_UNREADABLE
            if not call.is_first or (not self._has_calls and self._is_first(call.opener))
        ]
        thoughts = [self._thoughts.opener] if self._thoughts else []
        return [*openers, *filter(self._is_first, thoughts), *self._silent]

    def _is_first(self, opener: str) -> bool:
        """Return whether the opener stands, or may come to stand, before all that is said."""
        start = self._rest.lstrip()
        return not self._has_content and (start.startswith(opener) or opener.startswith(start))

    def _say(self, parts: Parts, text: str) -> None:
        text = self._space + text
        if self._is_fresh:
            text = text.lstrip()
            if text and self._has_content:  # nobody thinks any more
                text = f"\n{text}"  # a call stood between it and what was said before
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if not shown:
            return
        self._is_fresh = False
        if self._is_thinking:
            parts.reasoning += shown
        else:
            self._has_content = True
            parts.content += shown

    # In a call ---------------------------------------------------------------------------------

    def _begin_call(self, call: Markers) -> None:
        self._call, self._tried = call, 0
        self._before = self._space
        self._rest = call.opener[len(call.opener) - call.kept :] + self._rest

    def _read_call(self, parts: Parts) -> bool:
        """Read up to an end that makes the call readable; return whether there was one.

        The first end does not do: texts among the arguments may spell it.
        """
        assert self._call, "the caller asks only then"
        opener, closer = self._call.opener, self._call.closer
        while closer and (at := self._rest.find(closer, self._tried)) >= 0:
            if self._tell_calls(parts, at, at if closer == opener else at + len(closer)):
                return True
            self._tried = at + 1
            if self._unreadable >= MAX_UNREADABLE:
                self._take_back(parts)
                return True
        return False

    def _take_back(self, parts: Parts) -> None:
        """Treat the opener as text, and read the rest anew."""
        assert self._call, "the caller asks only then"
        call, self._call = self._call, None
        self._space, self._is_fresh = self._before, False
        self._say(parts, call.opener)
        rest, self._rest = self._rest[call.kept :], ""
        for start in range(0, len(rest), PIECE):
            self._rest += rest[start : start + PIECE]
            self._read_on(parts)

    def _tell_calls(self, parts: Parts, end: int, after: int) -> bool:
        assert self._call, "the caller asks only then"
        calls = READERS[self._call.syntax](self._rest[:end], self._tools)
        if not calls:
            self._unreadable += 1
            return False
        if not self._is_parallel:
            calls = [] if self._has_calls else calls[:1]
        parts.calls += calls
        self._has_calls = True
        self._rest = self._rest[after:]
        self._call, self._is_fresh = None, True
        return True
