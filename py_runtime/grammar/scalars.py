"""Strings, numbers and fixed values, as several schemas together ask for them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from py_runtime.base.messages import message
from py_runtime.base.short_texts import short
from py_runtime.grammar.finite_automata import Dfa, TooComplexError, automaton_of_length, intersect
from py_runtime.grammar.formats import PATTERNS
from py_runtime.grammar.keywords import TYPES, Atom, decimal, types_of
from py_runtime.grammar.limits import MAX_QUOTED, refuse
from py_runtime.grammar.numbers import Bound, number_automaton
from py_runtime.grammar.regex import compile_pattern
from py_runtime.grammar.shapes import Number
from py_runtime.grammar.strings import Counted, String

Atoms = Sequence[Atom]
Alternatives = list[tuple[Atom, ...]]

_STRUCTURAL = (
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
)


def string_shape(atoms: Atoms) -> String | None:
    """None: there is no such string."""
    least = max(keyword_values(atoms, "minLength"), default=0)
    most = min(keyword_values(atoms, "maxLength"), default=None)
    if most is not None and most < least:
        return None
    automata = text_automata(atoms)
    if not automata:
        return String(Counted(least, most))
    if None in automata:
        return None
    try:
        if least or most is not None:
            automata.append(automaton_of_length(least, most))
        whole: Dfa | None = automata[0]
        for other in automata[1:]:
            whole = intersect(whole, other) if whole and other else None
    except TooComplexError:
        path = atoms[0].part.path
        raise refuse(message("schema_texts_too_complex"), path) from None
    return String(whole) if whole else None


def text_automata(atoms: Atoms) -> list[Dfa | None]:
    """Return the automata of all patterns and formats."""
    found: list[Dfa | None] = []
    for atom in atoms:
        name = atom.get("format")
        if name is not None:
            if name not in PATTERNS:
                named = short(name, MAX_QUOTED)
                fault = message("schema_format", format=named, known=list(PATTERNS))
                raise refuse(fault, atom.part.path)
            found.append(compile_pattern(PATTERNS[name]))
        source = atom.get("pattern")
        if source is not None:
            try:
                found.append(compile_pattern(source))
            except ValueError as error:
                named = short(source, MAX_QUOTED)
                fault = message("schema_pattern", pattern=named, fault=str(error))
                raise refuse(fault, atom.part.path) from None
    return found


def number_shape(atoms: Atoms, whole: bool) -> Number | None:
    """None: there is no such number."""
    low, high = bounds(atoms)
    try:
        automaton = number_automaton(low, high, whole)
    except (ValueError, TooComplexError) as error:
        fault = message("schema_bounds", fault=str(error) or "too complex")
        raise refuse(fault, atoms[0].part.path) from None
    return Number(automaton) if automaton else None


def bounds(atoms: Atoms) -> tuple[Bound | None, Bound | None]:
    """Return the strictest bounds; of equal ones, those that leave the value itself out."""
    lows = [Bound(decimal(value), open=False) for value in keyword_values(atoms, "minimum")]
    lows += (
        Bound(decimal(value), open=True) for value in keyword_values(atoms, "exclusiveMinimum")
    )
    highs = [Bound(decimal(value), open=False) for value in keyword_values(atoms, "maximum")]
    highs += (
        Bound(decimal(value), open=True) for value in keyword_values(atoms, "exclusiveMaximum")
    )
    low = max(lows, key=lambda bound: (bound.value, bound.open), default=None)
    high = min(highs, key=lambda bound: (bound.value, not bound.open), default=None)
    return low, high


def keyword_values(atoms: Atoms, keyword: str) -> list[Any]:
    """Return a keyword's values in all the schemas that have it."""
    return [atom.keywords[keyword] for atom in atoms if keyword in atom.keywords]


def fixed_values(atoms: Atoms) -> list[Any] | None:
    """Return the values that every enum, const and other keyword allows; None for any value."""
    lists = [*keyword_values(atoms, "enum"), *([value] for value in keyword_values(atoms, "const"))]
    if not lists:
        return None
    if any(isinstance(value, list | dict) for values in lists for value in values):
        for atom in atoms:
            if beside := next((key for key in _STRUCTURAL if key in atom.keywords), None):
                raise refuse(message("schema_beside_fixed", keyword=beside), atom.part.path)
    others = [{key_of(value) for value in values} for values in lists[1:]]
    return [
        value
        for value in lists[0]
        if all(key_of(value) in other for other in others) and agrees(value, atoms)
    ]


def agrees(value: Any, atoms: Atoms) -> bool:
    """Return whether a fixed value is what the keywords beside it ask for."""
    types = types_of(value)
    for atom in atoms:
        asked = atom.get("type")
        if asked is not None and not set(types) & set(
            asked if isinstance(asked, list) else [asked]
        ):
            return False
    if types[-1] == "number":
        low, high = bounds(atoms)
        exact = decimal(value)
        above = low is None or exact > low.value or (exact == low.value and not low.open)
        below = high is None or exact < high.value or (exact == high.value and not high.open)
        return above and below
    if types == ["string"]:
        lengths = (
            all(len(value) >= least for least in keyword_values(atoms, "minLength")),
            all(len(value) <= most for most in keyword_values(atoms, "maxLength")),
        )
        return all(lengths) and all(
            automaton and automaton.matches(value) for automaton in text_automata(atoms)
        )
    return True


def key_of(value: Any) -> str:
    """Equal for values that JSON Schema takes for equal: 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_with_whole_numbers(value), sort_keys=True)


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    return value


def write_json(value: Any) -> bytes:
    """Write a value as JSON, in the way people write it."""
    return json.dumps(value, ensure_ascii=False).encode()


def drop_duplicates(values: Iterable[Any]) -> list[Any]:
    """Drop duplicates as JSON sees them: 1 and 1.0 are the same, 1 and true are not."""
    return list({key_of(value): value for value in values}.values())


def stated_types(atoms: Atoms) -> list[str]:
    """Return the types that every one of the schemas allows, in a fixed order."""
    allowed = list(TYPES)
    for asked in keyword_values(atoms, "type"):
        listed = {*asked} if isinstance(asked, list) else {asked}
        if "number" in listed:
            listed.add("integer")
        allowed = [name for name in allowed if name in listed]
    return allowed
