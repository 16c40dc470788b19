"""Texts in the order in which they answer a query, in the shapes of Jina's and llama.cpp's API."""

from collections.abc import Mapping
from typing import Any

from py_runtime.app.completions import check_model
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.base.request_texts import refuse_half_pairs
from py_runtime.generation.options import unknown_field
from py_runtime.model import AnyModel, Encoder

MOST = 10_000  # texts of a request
Json = dict[str, Any]


async def create_ranking(model: AnyModel, given: Mapping[str, Any], cancel: CancelToken) -> Json:
    """Return each text's score from 0 to 1, the best first; RequestError names a wrong field."""
    refuse_half_pairs(given)
    fields = {name: value for name, value in given.items() if value is not None}
    check_model(model, fields.pop("model", None))
    query, documents = fields.pop("query", None), fields.pop("documents", None)
    if not isinstance(query, str) or not query:
        raise RequestError("query must be a text, not empty", "query")
    texts = _texts(documents)
    most = fields.pop("top_n", len(texts))
    if type(most) is not int or most < 1:
        raise RequestError("top_n must be an integer from 1 on", "top_n")
    shows = fields.pop("return_documents", False)
    if type(shows) is not bool:
        raise RequestError("return_documents must be true or false", "return_documents")
    if fields:
        raise unknown_field(next(iter(fields)))
    if not isinstance(model, Encoder):
        raise RequestError(message("encoder_cannot_rerank", name=model.manifest.name), "model")
    scores, count = await model.scores(query, texts, cancel)
    order = sorted(range(len(texts)), key=lambda place: -scores[place])[:most]
    return {
        "object": "list",
        "model": model.manifest.name,
        "results": [
            {
                "index": place,
                "relevance_score": float(scores[place]),
                **({"document": {"text": texts[place]}} if shows else {}),
            }
            for place in order
        ],
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def _texts(documents: Any) -> list[str]:
    if not isinstance(documents, list) or not 1 <= len(documents) <= MOST:
        raise RequestError(f"documents must be a list of 1 to {MOST:,} texts", "documents")
    texts: list[str] = []
    for place, each in enumerate(documents):
        text = each.get("text") if isinstance(each, dict) else each
        if not isinstance(text, str) or not text:
            raise RequestError(f"documents[{place}] must be a text, not empty", "documents")
        texts.append(text)
    return texts
