"""The calls about documents that are searched: opened, embedded, asked, cut into parts.

The page keeps documents and their vectors; here they are as long as the engine lives, and a call
that names one which is not here says so. Places are counted as JavaScript counts characters.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from py_runtime.app.loaded_models import LoadedModel, LoadedModels
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.gpu import CPU
from py_runtime.model import AnyModel, Encoder, writer
from py_runtime.model.embed import embed
from py_runtime.retrieval.document import Chunk, Document, utf_16_places
from py_runtime.retrieval.search import Search, parts_of
from py_runtime.retrieval.vectors import packed

MOST_OPEN = 64  # documents
OF_QUESTIONS, OF_TEXTS = ("query",), ("document", "passage")  # names of an encoder's prompts
# What meaning counts beside words: encoders are trained to compare texts, decoders are not.
OF_ENCODER, OF_DECODER = 0.5, 0.2
Json = dict[str, Any]


@dataclass(eq=False)
class Opened:
    """A document that can be searched, with the vectors of its chunks, as far as they are known."""

    document: Document
    places: np.ndarray | None  # of its characters, as JavaScript counts them
    model: str = ""  # that the vectors are of
    is_encoder: bool = False
    batches: list[np.ndarray] = field(default_factory=list)  # i8 [N, W]

    @property
    def embedded(self) -> int:
        return sum(map(len, self.batches))

    @property
    def is_embedded(self) -> bool:
        return 0 < self.embedded == len(self.document.chunks)

    def _at(self, at: int) -> int:
        return at if self.places is None else int(self.places[at])

    def described(self, first: Chunk, last: Chunk) -> Json:
        """Return where a passage is, for the page."""
        place = asdict(self.document.place(first, last))
        return {**place, "start": self._at(first.start), "end": self._at(last.end)}


class DocumentCalls:
    """The documents of an engine, by the ids that the page gave them."""

    def __init__(self, loaded: LoadedModels) -> None:
        self._loaded = loaded
        self._opened: dict[str, Opened] = {}  # those that were used last come last
        self._searched: list[Opened] = []
        self._search = Search([])  # of these
        self._vectors_of = ""  # the model whose vectors it has

    async def call(self, action: Any, fields: Any, cancel: CancelToken) -> Json:
        actions = {
            "open": self._open,
            "embed": self._embed,
            "search": self._find,
            "parts": self._parts,
        }
        if action not in actions:
            raise RequestError(f"there is nothing like {short(action)} to do with documents")
        if not isinstance(fields, dict):
            raise RequestError("fields must be an object", "fields")
        missing = [one for one in _texts(fields, "ids") if one not in self._opened]
        if missing and action != "open":
            return {"missing": missing}
        found: Json = await actions[action](fields, cancel)
        return found

    def _used(self, ids: Sequence[str]) -> list[Opened]:
        for one in ids:
            self._opened[one] = self._opened.pop(one)
        return [self._opened[one] for one in ids]

    async def _open(self, fields: Json, cancel: CancelToken) -> Json:
        """Take a document in, perhaps with vectors that were made earlier."""
        (one,) = _texts(fields, "ids")
        name, kind, text = (_text(fields, name) for name in ("name", "kind", "text"))
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        places = utf_16_places(text)
        starts = fields.get("starts") or []
        if not all(isinstance(start, int) for start in starts):
            raise RequestError("starts must be a list of integers", "starts")
        if places is not None:
            starts = np.searchsorted(places, starts).tolist()
        starts = [min(max(start, 0), len(text)) for start in starts]
        names = _texts(fields, "names")
        if names and len(names) != len(starts):
            raise RequestError("names must be as many as starts", "names")
        opened = Opened(Document(name, kind, text, sorted(starts), names), places)
        if fields.get("vectors"):
            self._take_vectors(opened, fields["vectors"])
        self._opened.pop(one, None)
        self._opened[one] = opened
        while len(self._opened) > MOST_OPEN:
            del self._opened[next(iter(self._opened))]
        return {"chunks": len(opened.document.chunks), "is_embedded": opened.is_embedded}

    @staticmethod
    def _take_vectors(opened: Opened, given: Json) -> None:
        """Take vectors that fit the chunks; others were made by an older page, say."""
        data = np.frombuffer(base64.b64decode(given["base64"]), np.int8)
        count = len(opened.document.chunks)
        if count and data.size and data.size % count == 0:
            opened.batches = [data.reshape(count, -1)]
            opened.model, opened.is_encoder = str(given["model"]), bool(given["is_encoder"])

    async def _embed(self, fields: Json, cancel: CancelToken) -> Json:
        """Embed the next chunks of a document; give all vectors once these were the last.

        A model that writes texts takes minutes for that on the processor: nothing is embedded then.
        """
        (opened,) = self._used(_texts(fields, "ids"))
        count = fields.get("count", 8)
        with self._loaded.asked(None, cancel, for_texts=True) as loaded:
            if not loaded.is_encoder and loaded.model.graph.device.kind == CPU:
                return {"is_too_slow": True}
            if opened.model != loaded.name:
                opened.model, opened.is_encoder = loaded.name, loaded.is_encoder
                opened.batches = []
            done = opened.embedded
            chunks = opened.document.chunks[done : done + count]
            texts = [opened.document.text[each.start : each.end] for each in chunks]
            if texts:
                vectors = await _vectors(loaded.model, texts, OF_TEXTS, cancel)
                if opened.embedded == done and opened.model == loaded.name:
                    opened.batches.append(packed(vectors))
        answer: Json = {"done": opened.embedded, "total": len(opened.document.chunks)}
        if opened.is_embedded:
            self._searching([opened], opened.model)  # so that the first question need not wait
            data = np.concatenate(opened.batches)
            answer["vectors"] = {
                "model": opened.model,
                "is_encoder": opened.is_encoder,
                "base64": base64.b64encode(data.tobytes()).decode(),
            }
        return answer

    async def _find(self, fields: Json, cancel: CancelToken) -> Json:
        """Find the passages of documents that a question asks for."""
        ids, question = _texts(fields, "ids"), _text(fields, "question")
        budget = fields.get("budget")
        if not isinstance(budget, int):
            raise RequestError("budget must be an integer", "budget")
        opened = self._used(ids)
        with self._loaded.asked(None, cancel, for_texts=True) as loaded:
            by = _common_model(opened, loaded)
            vector = None
            if by and question.strip():
                (vector,) = await _vectors(loaded.model, [question], OF_QUESTIONS, cancel)
        passages = self._searching(opened, by).passages(
            question, budget, self._count_tokens(), vector
        )
        documents = [each.document for each in opened]
        found = []
        for passage in passages:
            at = documents.index(passage.document)
            place = opened[at].described(passage.chunk, passage.chunk)
            found.append({"search": ids[at], "label": passage.label, **place})
        return {"passages": found, "model": by}

    def _searching(self, opened: list[Opened], model: str) -> Search:
        """Return what searches these documents, also by the vectors of a model, if it is named.

        It is made once for several questions.
        """
        if self._searched != opened:
            self._search = Search([each.document for each in opened])
            self._searched, self._vectors_of = opened, ""
        if model and model != self._vectors_of:
            is_encoder = opened[0].is_encoder
            rows = np.concatenate([each for one in opened for each in one.batches])
            weight = OF_ENCODER if is_encoder else OF_DECODER
            self._search.add_vectors(rows, weight, is_centred=not is_encoder)
            self._vectors_of = model
        return self._search

    async def _parts(self, fields: Json, cancel: CancelToken) -> Json:
        """Cut a document into parts of so many tokens."""
        (opened,) = self._used(_texts(fields, "ids"))
        budget = fields.get("budget")
        if not isinstance(budget, int) or budget < 1:
            raise RequestError("budget must be a positive integer", "budget")
        parts = parts_of(opened.document, budget, self._count_tokens())
        return {"parts": [opened.described(*each) for each in parts]}

    def _count_tokens(self) -> Callable[[str], int]:
        """Return what counts tokens as the model does that will read the passages."""
        tokenizer = writer(self._loaded.find(None).model).tokenizer
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _common_model(opened: Sequence[Opened], loaded: LoadedModel) -> str:
    """Return the name of the loaded model if all documents have vectors of it, or nothing."""
    is_one = all(each.is_embedded and each.model == loaded.name for each in opened)
    return loaded.name if is_one and opened else ""


async def _vectors(
    model: AnyModel, texts: Sequence[str], prompts: Sequence[str], cancel: CancelToken
) -> np.ndarray:
    """Return a vector for each text, f32 [N, W], of as much of it as the model takes."""
    if isinstance(model, Encoder):
        name = next((each for each in prompts if each in model.encoding.prompts), None)
        inputs = [each[: model.context] for each in model.parse_inputs(texts, name)]
        return await model.vectors(inputs, None, cancel)
    prompts_of = [model.prompt_tokens(each)[: model.context] for each in texts]
    return await embed(model, prompts_of, "mean", cancel)


def _text(fields: Json, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise RequestError(f"{name} must be a text", name)
    return value


def _texts(fields: Json, name: str) -> list[str]:
    values = fields.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise RequestError(f"{name} must be a list of texts", name)
    return values
