"""The models that an engine has loaded: one as a rule, or several that share its device."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from py_runtime.app.model_facts import Json
from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError, NoModelError, RequestError
from py_runtime.base.messages import Message, message
from py_runtime.graph import Graph
from py_runtime.model import AnyModel, Encoder
from py_runtime.model.stores import Store


class Wanted(NamedTuple):
    """The wishes of a load, beside the device."""

    kernels: str | None = None
    kv: str | None = None
    draft: str | Store | None = None


NOTHING = Wanted()


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A loaded model, with what its load gave."""

    model: AnyModel
    described: Json  # what load() gave
    wanted: Wanted
    warming: asyncio.Future[None]  # done when the first answer need wait for nothing

    @property
    def name(self) -> str:
        return self.model.manifest.name

    @property
    def graphs(self) -> list[Graph]:
        """Return those that hold its memory: its own, and that of what proposes its tokens."""
        proposer = None if isinstance(self.model, Encoder) else self.model.proposer
        return [self.model.graph, *([] if proposer is None else [proposer.session.graph])]

    @property
    def is_encoder(self) -> bool:
        return isinstance(self.model, Encoder)

    @property
    def is_reranker(self) -> bool:
        return isinstance(self.model, Encoder) and self.model.scores_pairs


class LoadedModels:
    """The loaded models in the order they came, each with its own name, and the work for each."""

    def __init__(self) -> None:
        self._loaded: list[LoadedModel] = []
        self.running: dict[CancelToken, AnyModel | None] = {}  # for whom; None: for one that comes

    def __iter__(self) -> Iterator[LoadedModel]:
        return iter(tuple(self._loaded))

    @property
    def last(self) -> LoadedModel | None:
        """Return the model that answers where none is named: the last one that writes texts.

        Where none does, it is the last one.
        """
        writing = [one for one in self._loaded if not one.is_encoder]
        suitable = writing or self._loaded
        return suitable[-1] if suitable else None

    def find(self, name: Any, for_texts: bool = False, for_pairs: bool = False) -> LoadedModel:
        """Return the model of that name, or where the name is None the one that suits.

        `for_texts`: one that encodes texts suits better than one that writes them; `for_pairs`: a
        reranker does.
        """
        if self.last is None:
            raise NoModelError
        if name is None:
            wanted = [
                one
                for one in self._loaded
                if (for_pairs and one.is_reranker)
                or (for_texts and one.is_encoder and not one.is_reranker)
            ]
            return wanted[-1] if wanted else self.last
        for loaded in self._loaded:
            if loaded.name == name:
                return loaded
        names = ", ".join(loaded.name for loaded in self._loaded)
        is_one = len(self._loaded) == 1
        known = f"the loaded model is {names}" if is_one else f"the loaded models are {names}"
        raise RequestError(f"{known}, not {name!r:.100}", "model")

    def add(
        self,
        model: AnyModel,
        described: Json,
        wanted: Wanted = NOTHING,
        with_template: bool = True,
    ) -> None:
        """Add a model and warm it up while the user types; remove() or another load stops that.

        After a restart its template is left out: the engine may have hung in it.
        """
        cancel = CancelToken()
        self.running[cancel] = model
        warming = asyncio.ensure_future(self._warm_up(model, cancel, with_template))
        self._loaded.append(LoadedModel(model, described, wanted, warming))
        self.tell(message("model_loaded", name=model.manifest.name))

    async def _warm_up(self, model: AnyModel, cancel: CancelToken, with_template: bool) -> None:
        # An answer that is asked for meets the fault, or what was interrupted, again.
        with self.at_work(cancel, model), suppress(InpageError, KeyboardInterrupt):
            await model.warm_up(cancel, with_template)

    async def remove(self, leaving: Iterable[LoadedModel]) -> None:
        """Stop what is being generated with these models, then give the GPU's memory back."""
        for loaded in leaving:
            self.stop(loaded.model)
            async with loaded.model.idle():
                self._loaded.remove(loaded)
                loaded.model.unload()
            self.tell(message("model_unloaded", name=loaded.name))

    def tell(self, said: Message) -> None:
        """Tell pages of the last one, and where each came from: a restart brings all back."""
        paths = {loaded.name: loaded.described["path"] for loaded in self._loaded}
        last = self.last.described if self.last else None
        notices.post("model", said, loaded=last, paths=paths)

    # What is at work ---------------------------------------------------------------------------

    @contextmanager
    def at_work(self, cancel: CancelToken, model: AnyModel | None = None) -> Iterator[None]:
        """Register work, so that it can be stopped until it has ended."""
        self.running[cancel] = model
        try:
            yield
        finally:
            self.running.pop(cancel, None)

    @contextmanager
    def asked(
        self, name: Any, cancel: CancelToken, for_texts: bool = False, for_pairs: bool = False
    ) -> Iterator[LoadedModel]:
        """Yield the model of that name while it works for a call."""
        loaded = self.find(name, for_texts, for_pairs)
        with self.at_work(cancel, loaded.model):
            yield loaded

    def stop(self, model: AnyModel) -> None:
        for cancel, at_work_for in list(self.running.items()):
            if at_work_for is model:
                cancel.cancel()

    def stop_all(self) -> None:
        for cancel in list(self.running):
            cancel.cancel()
