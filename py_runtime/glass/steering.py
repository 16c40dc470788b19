"""Steering: vectors that are added to the residual stream, and parts that are turned off.

Both work while an answer is being written: strengths lie in constants that the host writes, so
that the loop on the device goes on. What was computed before keeps what it was computed with until
the next answer, which computes its prompt anew.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.base.short_texts import short
from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.steering_sites import (
    ADD,
    AddSites,
    Site,
    branch_sites,
    heads_site,
    neurons_site,
    stream_site,
)
from py_runtime.model import Model
from py_runtime.model.changed_graph import Addition

Floats = NDArray[np.float32]
MAX_STRENGTH = 1000.0
MAX_NAME = 100  # characters
# "layer 3", "attention 3", "mlp 3", "head 3.1", "neuron 3.100"
PART = re.compile(r"(layer|attention|mlp|head|neuron) (\d{1,5})(?:\.(\d{1,7}))?")
KINDS = {"layer": ("mixer", "mlp", "more"), "attention": ("mixer",), "mlp": ("mlp",)}


@dataclass(eq=False)
class Vector:
    """A direction in the residual stream behind a layer."""

    layer: int
    values: Floats  # [W]
    strength: float

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.values))


class Steering:
    """The steering of a model; ask `Steering.of(model)` for it.

    `await steering.add("formal", 12, vector, 4.0)`, `steering.set_strength("formal", -2.0)`,
    `await steering.turn_off("head 3.1")`.
    """

    def __init__(self, model: Model) -> None:
        self._changes = model.changes
        self._anatomy = Anatomy.of(model.folder.program)
        self._vectors: dict[str, Vector] = {}
        self._off: tuple[str, ...] = ()
        self._changes.add_owner(self)

    @classmethod
    def of(cls, model: Model) -> "Steering":
        if model not in _steerings:
            _steerings[model] = cls(model)
        return _steerings[model]

    @property
    def vectors(self) -> Mapping[str, Vector]:
        """Return all vectors, by their names."""
        return dict(self._vectors)

    @property
    def turned_off(self) -> tuple[str, ...]:
        """Return the parts that are off."""
        return self._off

    @property
    def layers(self) -> int:
        return len(self._anatomy.blocks)

    @property
    def width(self) -> int:
        return self._anatomy.width

    def parts_of(self, layer: int) -> dict[str, int]:
        """Return the parts of a layer that can be turned off, and how many there are of each."""
        found = {"layer": 1, "mlp": len(branch_sites(self._anatomy, layer, KINDS["mlp"]))}
        found["attention"] = len(branch_sites(self._anatomy, layer, KINDS["attention"]))
        for kind, site_of in (("head", heads_site), ("neuron", neurons_site)):
            with suppress(RequestError):  # it has none
                found[kind] = site_of(self._anatomy, layer).dims[0]
        return found

    def _repr_html_(self) -> str:
        rows = [(name, each.layer, f"{each.strength:g}") for name, each in self._vectors.items()]
        facts = [f"{part} is off" for part in self._off]
        return as_html("Steering", facts, ("vector", "layer", "strength"), *rows)

    async def add(self, name: str, layer: int, values: np.ndarray, strength: float = 1.0) -> None:
        """Add a vector [W] behind a layer; one of the same name goes."""
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            raise RequestError(f"a vector needs a name of up to {MAX_NAME} characters", "name")
        site = stream_site(self._anatomy, layer)
        given = np.array(values, np.float32)
        if given.shape != site.dims or not np.isfinite(given).all():
            raise RequestError(
                f"the vector must have {site.dims[0]} finite values, got {list(given.shape)}",
                "values",
            )
        vector = Vector(layer, given, _checked(strength))
        await self._change({**self._vectors, name: vector}, self._off)

    def set_strength(self, name: str, strength: float) -> None:
        """Change a strength from the next token on."""
        self._find(name).strength = _checked(strength)
        self._changes.write_numbers()

    async def remove(self, name: str) -> None:
        """Remove a vector."""
        self._find(name)
        others = {key: each for key, each in self._vectors.items() if key != name}
        await self._change(others, self._off)

    async def turn_off(self, *parts: str) -> None:
        """Turn parts off: "layer 3", "attention 3", "mlp 3", "head 3.1", "neuron 3.100"."""
        self._sites(self._vectors, parts)
        await self._change(self._vectors, (*self._off, *(p for p in parts if p not in self._off)))

    async def turn_on(self, *parts: str) -> None:
        """Turn parts on again; all that are off, where none is named."""
        unknown = [part for part in parts if part not in self._off]
        if unknown:
            raise RequestError(f"{short(unknown[0])} is not off", "parts")
        off = tuple(part for part in self._off if parts and part not in parts)
        await self._change(self._vectors, off)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Run the model without steering for a while; nothing else may run it then."""
        before = self._vectors, self._off
        self._vectors, self._off = {}, ()
        self._changes.write_numbers(is_lasting=False)
        try:
            yield
        finally:
            self._vectors, self._off = before
            self._changes.write_numbers(is_lasting=False)

    def addition(self) -> Addition | None:
        """Return what the model's graph needs for it."""
        sites = self._sites(self._vectors, self._off)
        if not sites:
            return None
        by_value = {site.value: site for site in sites}
        return Addition(first=(AddSites(by_value),), numbers=lambda: self._numbers(sites))

    def _find(self, name: str) -> Vector:
        if name not in self._vectors:
            known = ", ".join(self._vectors) or "none"
            raise RequestError(f"no vector is called {short(name)}; there are: {known}", "name")
        return self._vectors[name]

    async def _change(self, vectors: Mapping[str, Vector], off: Sequence[str]) -> None:
        before = self._vectors, self._off

        def put(found: Mapping[str, Vector], parts: Sequence[str]) -> None:
            self._vectors, self._off = dict(found), tuple(parts)

        has_places = self._sites(vectors, off) == self._sites(*before)
        if has_places:
            put(vectors, off)
            self._changes.write_numbers()
        else:
            await self._changes.apply(lambda: put(vectors, off), lambda: put(*before))

    def _sites(self, vectors: Mapping[str, Vector], off: Sequence[str]) -> list[Site]:
        """Return all places that these need, each once."""
        found: dict[int, Site] = {}
        for vector in vectors.values():
            site = stream_site(self._anatomy, vector.layer)
            found[site.value] = site
        for part in off:
            for site, _ in self._places(part):
                found[site.value] = site
        return list(found.values())

    def _places(self, part: str) -> list[tuple[Site, int | None]]:
        """Return the places of a part, and which row of their numbers is its own."""
        match = PART.fullmatch(part) if isinstance(part, str) else None
        if match is None or (match[3] is None) != (match[1] in KINDS):
            raise RequestError(
                f"{short(part)} is no part: write 'layer 3', 'attention 3', 'mlp 3', 'head 3.1' or "
                "'neuron 3.100'",
                "parts",
            )
        kind, layer = match[1], int(match[2])
        if kind in KINDS:
            stream_site(self._anatomy, layer)  # says which layers there are
            sites = branch_sites(self._anatomy, layer, KINDS[kind])
            return [(site, None) for site in sites]
        number = int(match[3])
        site = (heads_site if kind == "head" else neurons_site)(self._anatomy, layer)
        if number >= site.dims[0]:
            raise RequestError(f"layer {layer} has {site.dims[0]} of them, from 0 on", "parts")
        return [(site, number)]

    def _numbers(self, sites: Sequence[Site]) -> dict[str, np.ndarray]:
        """Return what the constants of these places hold."""
        numbers = {
            site.name: (np.zeros if site.how == ADD else np.ones)(site.dims, np.float32)
            for site in sites
        }
        for vector in self._vectors.values():
            name = stream_site(self._anatomy, vector.layer).name
            numbers[name] += np.float32(vector.strength) * vector.values
        for part in self._off:
            for site, row in self._places(part):
                numbers[site.name][slice(None) if row is None else row] = 0
        return numbers


_steerings: WeakKeyDictionary[Model, Steering] = WeakKeyDictionary()


def _checked(strength: float) -> float:
    is_number = isinstance(strength, int | float) and not isinstance(strength, bool)
    if not is_number or not math.isfinite(strength) or abs(strength) > MAX_STRENGTH:
        raise RequestError(
            f"the strength must be a number from {-MAX_STRENGTH:g} to {MAX_STRENGTH:g}, got "
            f"{short(strength)}",
            "strength",
        )
    return float(strength)
