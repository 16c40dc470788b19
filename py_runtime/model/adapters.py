"""The low-rank adapters (LoRA) of a loaded model: applied as it runs, each with a strength."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from py_runtime.adapters.adapter import Adapter, renamed
from py_runtime.adapters.errors import AdapterError
from py_runtime.adapters.files import files_of, read_adapter
from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.base.short_texts import short
from py_runtime.folder.file_names import CONFIG
from py_runtime.folder.layout import ModelFolder
from py_runtime.model.changed_graph import Addition, ChangedGraph
from py_runtime.model.config import read_json
from py_runtime.model.stores import Store
from py_runtime.passes.add_low_rank import AddLowRank, Update, linears_of
from py_runtime.program.decoder_form import head_dim_of, is_tiled

HEAD, EMBEDDING = "lm_head", "embed_tokens"
DELTA_NET = ".linear_attn."
MAX_STRENGTH = 100.0


@dataclass
class Applied:
    """An adapter that a model has."""

    adapter: Adapter
    strength: float


class AdaptedModel(Protocol):
    """The parts of a model that its adapters need."""

    store: Store
    folder: ModelFolder
    changes: ChangedGraph


class Adapters:
    """The adapters of a model, by name.

    `await model.adapters.load("folder or .gguf", 0.8)`, `model.adapters.set_strength(name, 0.5)`,
    `await model.adapters.remove(name)`. The weights stay as they are, quantised and all.
    """

    def __init__(self, model: AdaptedModel) -> None:
        self._model = model
        self._applied: dict[str, Applied] = {}
        model.changes.add_owner(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.strengths)

    def __len__(self) -> int:
        return len(self._applied)

    @property
    def strengths(self) -> dict[str, float]:
        """Return the strength of each, in the order they came."""
        return {name: each.strength for name, each in self._applied.items()}

    def _repr_html_(self) -> str:
        rows = [(name, f"{strength:g}") for name, strength in self.strengths.items()]
        return as_html("Adapters", [f"{len(rows)} applied"], ("adapter", "strength"), *rows)

    # What users do -----------------------------------------------------------------------------

    async def load(self, where: Any, strength: float = 1.0, name: str | None = None) -> str:
        """Apply an adapter and return its name; what it does not fit is said.

        `where`: a folder of PEFT's or its .safetensors file, a GGUF file, or such files by name.
        """
        found, files = files_of(where)
        values = read_json(CONFIG, await self._model.store.read(self._model.folder, CONFIG))
        kind, head_dim = str(values.get("model_type")), head_dim_of(self._model.folder.program)
        adapter = self._fitted(await read_adapter(files, kind, head_dim))
        free = self._free_name(name or found)
        checked = _checked(strength)
        self._updates([*self._adapters(), adapter])  # says what does not fit
        applied = Applied(adapter, checked)
        await self._change({**self._applied, free: applied})
        return free

    def set_strength(self, name: str, strength: float) -> None:
        """Change a strength from the next token on; the next answer computes its prompt anew."""
        self._find(name).strength = _checked(strength)
        self._model.changes.write_numbers()

    async def remove(self, name: str) -> None:
        """Remove an adapter."""
        self._find(name)
        await self._change({key: each for key, each in self._applied.items() if key != name})

    def addition(self) -> Addition | None:
        """Return what the graph needs for all of them."""
        if not self._applied:
            return None
        add = AddLowRank(self._updates(self._adapters()))
        numbers = partial(self._numbers, add)
        return Addition(joining=(add,), arrays=add.arrays, numbers=numbers)

    # Inside ------------------------------------------------------------------------------------

    def _adapters(self) -> list[Adapter]:
        return [each.adapter for each in self._applied.values()]

    def _find(self, name: str) -> Applied:
        if name not in self._applied:
            known = ", ".join(self._applied) or "none"
            raise RequestError(f"no adapter is called {short(name)}; there are: {known}", "name")
        return self._applied[name]

    def _free_name(self, name: str) -> str:
        names = [name, *(f"{name} {number}" for number in range(2, len(self._applied) + 3))]
        return next(each for each in names if each not in self._applied)

    def _fitted(self, adapter: Adapter) -> Adapter:
        """Return the adapter by the names of this model's linears."""
        program = self._model.folder.program
        is_of_delta = any(DELTA_NET in name for names in adapter.parts for name in names)
        if is_of_delta and adapter.is_gguf != is_tiled(program):
            raise AdapterError(
                f"{adapter.file} is for linear attention, whose heads GGUF files store in another "
                "order",
                "give it in the form that the model has: GGUF with GGUF, PEFT with a folder",
            )
        linears = linears_of(program)
        is_tied = HEAD not in linears and EMBEDDING in linears
        return renamed(adapter, {HEAD: EMBEDDING} if is_tied else {})

    def _updates(self, adapters: Sequence[Adapter]) -> dict[str, list[Update]]:
        linears = linears_of(self._model.folder.program)
        head_dim = head_dim_of(self._model.folder.program)
        found: dict[str, list[Update]] = {}
        for number, adapter in enumerate(adapters):
            for owner, update in adapter.updates(number, linears, head_dim).items():
                found.setdefault(owner, []).append(update)
        return found

    async def _change(self, applied: dict[str, Applied]) -> None:
        before = self._applied

        def put(adapters: dict[str, Applied]) -> None:
            self._applied = adapters

        await self._model.changes.apply(lambda: put(applied), lambda: put(before))

    def _numbers(self, added: AddLowRank) -> dict[str, np.ndarray]:
        """Return the strength of each rank, by the constants that hold them."""
        strengths = [*self.strengths.values(), 0.0]  # the last is that of ranks that fill up
        return {
            name: np.array([strengths[owner] for owner in owners], np.float32)
            for name, owners in added.strengths.items()
        }


def _checked(strength: float) -> float:
    is_number = isinstance(strength, int | float) and not isinstance(strength, bool)
    if not is_number or not math.isfinite(strength) or abs(strength) > MAX_STRENGTH:
        raise RequestError(
            f"the strength must be a number from {-MAX_STRENGTH:g} to {MAX_STRENGTH:g}, got "
            f"{short(strength)}",
            "strength",
        )
    return float(strength)
