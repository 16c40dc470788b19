"""Output that always parses: the tokens that may come next during one generation."""

import json
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.grammar.limits import MAX_QUOTED, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES, PARAM, refuse
from py_runtime.grammar.masks import Masks
from py_runtime.grammar.schema import any_object, shape_of
from py_runtime.grammar.stack_automaton import StackAutomaton
from py_runtime.grammar.vocabulary import IMPOSSIBLE, TokenTexts

_MAX_COMPILED = 4  # automata kept for the next request with the same schema


def grammar_for(response_format: Any, texts: TokenTexts) -> "Grammar | None":
    """None: any text will do. RequestError: what is wrong, and where in the schema."""
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        schema: Any = None
    elif kind == "json_schema":
        described = response_format.get("json_schema")
        if not isinstance(described, dict) or "schema" not in described:
            raise refuse('json_schema must be an object such as {"name": ..., "schema": ...}')
        schema = described["schema"]
        if not isinstance(schema, dict | bool):
            raise refuse(f"json_schema.schema is {short(schema, MAX_QUOTED)}, not a schema")
    else:
        raise refuse('it must be {"type": "text"}, {"type": "json_object"} or "json_schema"')
    return Grammar(compile_schema(schema, texts))


def compile_schema(schema: Any, texts: TokenTexts) -> Masks:
    """Compile a schema; the last few are kept with their tables."""
    check_size(schema)
    try:
        key = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        key.encode()
    except UnicodeEncodeError:
        raise refuse("the schema holds half of a surrogate pair") from None
    except (TypeError, ValueError) as error:
        raise refuse(f"the schema is not JSON: {error}") from None
    kept: dict[str, Masks] = texts.compiled
    masks = kept.pop(key, None)
    if masks is None:
        # Read back from its text: nobody changes it then, and every key is a string.
        root = any_object() if schema is None else shape_of(json.loads(key))
        masks = Masks(StackAutomaton(root, texts))
    kept[key] = masks
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
            raise refuse(f"the schema has more than {MAX_SCHEMA_VALUES} values")
        level = [
            inner
            for value in containers
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise refuse("the schema is nested too deeply")


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
            raise refuse("this model's vocabulary cannot spell any text of the schema")

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
        state = self._state
        text = self._texts.texts.get(token, b"")
        for byte in text:
            state = self._automaton.step(state, byte)
        if self._ended or not text or not state:
            raise ValueError(f"token {token} is not allowed here")
        self._state = state
        self._text += text
        self._plan = self._plan[1:] if self._plan and self._plan[0] == token else None

    def _require(self, needed: int, max_tokens: int) -> None:
        if needed > max_tokens:
            raise RequestError(
                f"max_tokens is {max_tokens}, and the shortest answer that {PARAM} allows takes "
                f"{needed} tokens",
                "max_tokens",
            )

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
