"""The proof that no value fits two schemas of a oneOf, which then is an anyOf.

Where that is not certain, the oneOf is refused: the text could fit both, and would then be invalid.
"""

from collections.abc import Callable, Iterable
from itertools import combinations

from py_runtime.base.messages import message
from py_runtime.grammar.keywords import SchemaPart
from py_runtime.grammar.limits import MAX_COMPARISONS, refuse
from py_runtime.grammar.scalars import (
    Alternatives,
    Atoms,
    agrees,
    bounds,
    fixed_values,
    key_of,
    keyword_values,
    stated_types,
)

_MAX_DEPTH = 4  # properties of properties that are compared


class DisjointCheck:
    """A check that refuses branches that may share a value, or that take too long to compare."""

    def __init__(self, alternatives: Callable[[Iterable[SchemaPart]], Alternatives]) -> None:
        self._alternatives = alternatives
        self._comparisons_left = MAX_COMPARISONS

    def check(self, branches: list[Alternatives], part: SchemaPart) -> None:
        for left, right in combinations(range(len(branches)), 2):
            if self._disjoint(branches[left], branches[right], 0):
                continue
            raise refuse(message("schema_ambiguous", left=left, right=right), part.path)

    def _disjoint(self, left: Alternatives, right: Alternatives, depth: int) -> bool:
        return all(self._apart(a, b, depth) for a in left for b in right)

    def _apart(self, left: Atoms, right: Atoms, depth: int) -> bool:
        """Return whether it is certain that no value fits both."""
        self._comparisons_left -= 1
        if self._comparisons_left < 0:
            raise refuse(message("schema_too_many_to_compare"))
        shared = set(stated_types(left)) & set(stated_types(right))
        if not shared:
            return True
        if _fixed_apart(left, right) or _fixed_apart(right, left):
            return True
        if shared <= {"number", "integer"}:
            return _ranges_apart(left, right)
        return shared == {"object"} and self._objects_apart(left, right, depth)

    def _objects_apart(self, left: Atoms, right: Atoms, depth: int) -> bool:
        """Look for a property that one requires and the other forbids, or whose values differ."""
        needed_left, needed_right = _required_names(left), _required_names(right)
        if _forbids_any(right, needed_left) or _forbids_any(left, needed_right):
            return True
        if depth == _MAX_DEPTH:
            return False
        return any(
            self._disjoint(
                self._alternatives(_parts(left, name)),
                self._alternatives(_parts(right, name)),
                depth + 1,
            )
            for name in needed_left
            if name in needed_right
        )


def _fixed_apart(fixed: Atoms, other: Atoms) -> bool:
    values = fixed_values(fixed)
    if values is None:
        return False
    others = fixed_values(other)
    if others is not None:
        keys = {key_of(value) for value in others}
        return not any(key_of(value) in keys for value in values)
    return not any(agrees(value, other) for value in values)


def _ranges_apart(left: Atoms, right: Atoms) -> bool:
    for above, below in ((left, right), (right, left)):
        low, high = bounds(above)[0], bounds(below)[1]
        if low and high:
            touching = low.value == high.value and (low.open or high.open)
            if low.value > high.value or touching:
                return True
    return False


def _required_names(atoms: Atoms) -> dict[str, None]:
    return dict.fromkeys(name for names in keyword_values(atoms, "required") for name in names)


def _forbids_any(atoms: Atoms, names: Iterable[str]) -> bool:
    closed = [atom for atom in atoms if atom.get("additionalProperties") is False]
    known = [atom.get("properties") or () for atom in closed]
    return any(name not in listed for listed in known for name in names)


def _parts(atoms: Atoms, name: str) -> list[SchemaPart]:
    return [
        atom.inside("properties", name) for atom in atoms if name in (atom.get("properties") or ())
    ]
