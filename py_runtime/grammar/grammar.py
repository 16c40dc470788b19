"""Output that always parses: the tokens that may come next during one generation."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.base.short_texts import short
from py_runtime.grammar.limits import MAX_QUOTED, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES, PARAM, refuse
from py_runtime.grammar.masks import Masks
from py_runtime.grammar.schema import any_object, shape_of
from py_runtime.grammar.shapes import Choice
from py_runtime.grammar.stack_automaton import StackAutomaton
from py_runtime.grammar.vocabulary import IMPOSSIBLE, TokenTexts

_MAX_COMPILED = 4  # automata kept for the next request with the same schema


def grammar_for(response_format: Any, texts: TokenTexts) -> "Grammar | None":
    """None: any text will do. RequestError: what is wrong, and where in the schema."""
    if is_any_text(response_format):
        return None
    return Grammar(compile_schema(written_schema(response_format), texts))


def check_format(response_format: Any) -> None:
    """RequestError: what is wrong with it, whichever model answers."""
    if not is_any_text(response_format):
        read_schema(written_schema(response_format))


def is_any_text(response_format: Any) -> bool:
    """Return whether a request leaves the form of its answer open."""
    if isinstance(response_format, dict):
        return bool(response_format.get("type") == "text")
    return response_format is None


def written_schema(response_format: Any) -> str:
    """Return the schema as JSON: "null" for any object."""
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "json_object":
        return "null"
    if kind != "json_schema":
        raise refuse('it must be {"type": "text"}, {"type": "json_object"} or "json_schema"')
    described = response_format.get("json_schema")
    if not isinstance(described, dict) or "schema" not in described:
        raise refuse('json_schema must be an object such as {"name": ..., "schema": ...}')
    schema = described["schema"]
    if not isinstance(schema, dict | bool):
        raise refuse(f"json_schema.schema is {short(schema, MAX_QUOTED)}, not a schema")
    check_size(schema)
    try:
        written = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        written.encode()
    except UnicodeEncodeError:
        raise refuse(message("schema_half_pair")) from None
    except (TypeError, ValueError) as error:
        raise refuse(f"the schema is not JSON: {error}") from None
    return written


def read_schema(written: str) -> Choice:
    """Read a schema from its text: nobody changes it then, and every key is a string."""
    schema = json.loads(written)
    return any_object() if schema is None else shape_of(schema)


def compile_schema(written: str, texts: TokenTexts) -> Masks:
    """Compile a schema; the last few are kept with their tables."""
    kept: dict[str, Masks] = texts.compiled
    masks = kept.pop(written, None)
    if masks is None:
        masks = Masks(StackAutomaton(read_schema(written), texts))
    kept[written] = masks
    while len(kept) > _MAX_COMPILED:
        del kept[next(iter(kept))]
    return masks


def check_size(schema: Any) -> None:
    """Refuse a schema that is too large or too deep, before anything walks into it."""
    level, count = [schema], 1
    for _ in range(MAX_SCHEMA_DEPTH):
        containers = [value for value in level if isinstance(value, dict | list)]
        count += sum(map(len, containers))
        if count > MAX_SCHEMA_VALUES:
            raise refuse(message("schema_too_many_values", most=MAX_SCHEMA_VALUES))
        level = [
            inner
            for value in containers
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise refuse(message("schema_nested_too_deeply"))


class Grammar:
    """A generation in progress; whatever is allowed at each step, the text can be made whole."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._automaton = masks.automaton
        self._texts = masks.texts
        self._generation = self._automaton.generation
        self._state = self._automaton.start
        self._text = bytearray()
        self._ended = False
        self._plan: list[int] | None = None  # tokens that make the text whole from here
        if self._shortest_plan() is None:
            raise refuse(message("schema_unspellable"))

    @property
    def complete(self) -> bool:
        """Nothing but the end of the text may follow."""
        self._catch_up()
        return self._ended or self._automaton.must_end(self._state)

    @property
    def whole(self) -> bool:
        """The text may end here."""
        self._catch_up()
        return self._ended or self._automaton.is_whole(self._state)

    def closing_tokens(self) -> list[int]:
        """Return a short way to make the text whole from here."""
        self._catch_up()
        plan = self._shortest_plan()
        if plan is None or (self._plan is not None and len(self._plan) <= len(plan)):
            return list(self._plan or ())
        return plan

    def begin(self, begun: str | Sequence[int]) -> None:
        """Take in what is there of the text. RequestError: no text that is allowed begins so."""
        try:
            if isinstance(begun, str):
                self._take(begun.encode())
            else:
                for token in begun:
                    self.advance(token)
        except ValueError:
            raise RequestError(message("json_cannot_continue"), PARAM) from None

    def require(self, max_tokens: int) -> None:
        """RequestError: so few tokens cannot make the text whole."""
        self._require(len(self.closing_tokens()), max_tokens)

    def allowed(self, remaining: int | None = None) -> np.ndarray:
        """Return the mask, bool [V]; end tokens are allowed exactly where the text is whole.

        With `remaining`, the tokens that may still come (an end token aside), only those are
        allowed after which the text can be made whole in time.
        """
        self._automaton.forget_when_full()
        self._catch_up()
        mask: np.ndarray
        if self._ended:
            mask = np.zeros(self._texts.size, np.bool_)
        else:
            mask, worst = self._masks.mask_of(self._state)
            limit = IMPOSSIBLE - 1 if remaining is None else remaining - 1
            if worst > limit:
                mask = self._in_time(limit)
            if not self._text:
                mask[self._texts.changed_at_start] = False
        mask[self._texts.end_tokens] = self.whole
        return mask

    def advance(self, token: int) -> None:
        """ValueError: the token was not allowed."""
        self._catch_up()
        if token in self._texts.end_tokens and self.whole:
            self._ended = True
            return
        text = self._texts.texts.get(token, b"")
        if self._ended or not text:
            raise ValueError(f"token {token} is not allowed here")
        self._take(text)
        self._plan = self._plan[1:] if self._plan and self._plan[0] == token else None

    def _take(self, text: bytes) -> None:
        state = self._state
        for byte in text:
            state = self._automaton.step(state, byte)
        if not state:
            raise ValueError(f"{text!r} is not allowed here")
        self._state = state
        self._text += text

    def _require(self, needed: int, max_tokens: int) -> None:
        if needed > max_tokens:
            raise RequestError(message("json_room", room=max_tokens, needed=needed), "max_tokens")

    def _in_time(self, limit: int) -> np.ndarray:
        """Return the tokens that leave enough of the budget, always including the plan's own."""
        self._plan = self.closing_tokens()
        self._require(len(self._plan), limit + 1)
        mask = self._masks.mask_within(self._state, limit)
        if self._plan:
            mask[self._plan[0]] = True
        return mask

    def _shortest_plan(self) -> list[int] | None:
        """Never longer than what the masks count on, which is the ending part by part."""
        parts = self._automaton.ending(self._state)
        together = self._texts.spell(b"".join(parts))
        apart = [self._texts.spell(part) for part in parts]
        if together is None or None in apart:
            return together
        joined = [token for tokens in apart for token in tokens or ()]
        return together if len(together) <= len(joined) else joined

    def _catch_up(self) -> None:
        """Find the state again after the automaton started its tables anew."""
        if self._generation == self._automaton.generation:
            return
        self._generation = self._automaton.generation
        self._state = self._automaton.start
        for byte in self._text:
            self._state = self._automaton.step(self._state, byte)
