"""OpenAI's API over HTTP: one model, one answer at a time, whoever comes later waits.

POST /v1/chat/completions, POST /v1/completions (both may stream), POST /v1/embeddings,
POST /v1/rerank, GET /v1/models, /v1/models/NAME.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from inpage.hosts import OwnHosts
from inpage.http_server import (
    AnnouncingServer,
    WithHeaders,
    address_of,
    config_of,
    in_brackets,
    listen,
    notes_of,
)
from py_runtime.app.completions import Completion
from py_runtime.app.embeddings import create_embeddings
from py_runtime.app.jsonable import dumps
from py_runtime.app.rerank import create_ranking
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import aside
from py_runtime.base.errors import ContextLengthError, InpageError, InputError, RequestError
from py_runtime.base.short_texts import short
from py_runtime.base.sizes import in_words
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.model import AnyModel, writer
from py_runtime.tokens.errors import TextError

MAX_BODY = 16_000_000  # bytes: far more than any context holds
LONG_BODY = 50_000  # bytes, which take a while to parse
JSON_TYPE = "application/json"
BAD_REQUEST, NOT_FOUND, WRONG_METHOD, TOO_LARGE, WRONG_TYPE, FAULT = 400, 404, 405, 413, 415, 500
# No page of another origin can load an answer as a script, a picture or anything else.
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}
FOR_OTHERS = "it has no password, so that all of them can use the model"
# What is wrong with a request that names no field: its texts, or what the template says of them.
CALLERS_FAULTS = (ContextLengthError, InputError, TextError, ChatTemplateError)
Json = dict[str, Any]


async def serve_api(
    load: Callable[[], Awaitable[AnyModel]], host: str, port: int, further_hosts: Iterable[str]
) -> int:
    """Load the model, answer requests until stopped, and return the exit status."""
    listener = listen(host, port)  # before the model, which takes its time
    port = listener.getsockname()[1]
    model = await load()
    try:
        app = create_api(model, [in_brackets(host), *further_hosts])
        notes = notes_of(host, port, FOR_OTHERS)
        await AnnouncingServer(config_of(app), f"{address_of(host, port)}/v1", notes).serve(
            [listener]
        )
    finally:
        model.unload()
    return 0


def create_api(model: AnyModel, further_hosts: Iterable[str] = ()) -> ASGIApp:
    """Answers nobody who reaches it by a name that is not its own."""
    card = {"id": model.manifest.name, "object": "model", "created": 0, "owned_by": "inpage"}

    async def models(request: Request) -> Response:
        return ApiResponse({"object": "list", "data": [card]})

    async def one_model(request: Request) -> Response:
        if request.path_params["name"] == model.manifest.name:
            return ApiResponse(card)
        return failure(RequestError(f"the loaded model is {model.manifest.name}", "model"))

    async def chat(request: Request) -> Response:
        return await complete(model, request, is_chat=True)

    async def text(request: Request) -> Response:
        return await complete(model, request, is_chat=False)

    async def embeddings(request: Request) -> Response:
        return await embed(model, request)

    async def ranking(request: Request) -> Response:
        return await rerank(model, request)

    routes = [
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", one_model),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/completions", text, methods=["POST"]),
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/v1/rerank", ranking, methods=["POST"]),
    ]
    handlers = {NOT_FOUND: unknown_path, WRONG_METHOD: wrong_method, Exception: own_fault}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return WithHeaders(OwnHosts(app, further_hosts), SECURITY_HEADERS)


async def unknown_path(request: Request, error: Exception) -> Response:
    """Says what there is instead."""
    path = short(request.url.path)
    text = f"there is nothing at {path}: this server has /v1/models, /v1/embeddings, /v1/rerank"
    return failure(BodyError(f"{text}, /v1/completions and /v1/chat/completions", NOT_FOUND))


async def wrong_method(request: Request, error: Exception) -> Response:
    """Say which method it would have been."""
    wanted = "GET" if request.url.path.startswith("/v1/models") else "POST"
    text = f"{short(request.url.path)} takes {wanted}, not {request.method[:20]}"
    response = failure(BodyError(text, WRONG_METHOD))
    response.headers["Allow"] = wanted
    return response


async def own_fault(request: Request, error: Exception) -> Response:
    """Answer in OpenAI's shape; what went wrong is in this server's terminal."""
    return failure(InpageError("something went wrong in this server: its terminal shows what"))


async def complete(model: AnyModel, request: Request, is_chat: bool) -> Response:
    """Return an answer, at once or as a stream; a client that disconnects stops it."""
    try:
        completion = Completion(writer(model), await fields_of(request), is_chat)
    except InpageError as error:
        return failure(error)
    except ClientDisconnect:
        return Response()  # there is nobody to read it
    if completion.stream:
        return await streamed(request, completion)
    return await whole(request, completion.answer)


async def embed(model: AnyModel, request: Request) -> Response:
    """Vectors of texts; whoever goes away stops it."""
    return await computed(request, partial(create_embeddings, model))


async def rerank(model: AnyModel, request: Request) -> Response:
    """Texts in the order in which they answer a query."""
    return await computed(request, partial(create_ranking, model))


async def computed(
    request: Request, work: Callable[[Json, CancelToken], Awaitable[Json]]
) -> Response:
    """Return what is made of a request's fields."""
    try:
        fields = await fields_of(request)
    except InpageError as error:
        return failure(error)
    except ClientDisconnect:
        return Response()
    return await whole(request, partial(work, fields))


async def whole(request: Request, work: Callable[[CancelToken], Awaitable[Json]]) -> Response:
    """All of an answer at once."""
    cancel = CancelToken()
    watching = asyncio.create_task(cancel_when_gone(request, cancel))
    try:
        return ApiResponse(await work(cancel))
    except InpageError as error:
        return failure(error)
    finally:
        watching.cancel()


async def fields_of(request: Request) -> Json:
    """Return the request's JSON object.

    Pages of other origins can send plain text here without asking first, but JSON only with this
    server's leave, which it never gives.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON_TYPE:
        raise BodyError(f"send {JSON_TYPE}, not {media_type[:100]!a}", WRONG_TYPE)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise BodyError(f"the request is larger than {in_words(MAX_BODY)}", TOO_LARGE)
    try:
        fields = await aside(len(body) > LONG_BODY, lambda: parse_strict_json(bytes(body)))
    except ValueError as error:
        raise BodyError(f"the request is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BodyError("the request must be a JSON object")
    return fields


class ApiResponse(Response):
    """JSON in ASCII: whatever a text holds, it can be sent."""

    media_type = JSON_TYPE

    def render(self, content: Json) -> bytes:
        return dumps(content).encode()


class BodyError(RequestError):
    """A request that cannot be read at all, with its status."""

    def __init__(self, text: str, status: int = BAD_REQUEST) -> None:
        super().__init__(text)
        self.status = status


async def cancel_when_gone(request: Request, cancel: CancelToken) -> None:
    """Cancel once the client has disconnected.

    The body has been read, so the next thing to come is the end of the connection.
    """
    while (await request.receive())["type"] != "http.disconnect":
        pass
    cancel.cancel()


# Streams ---------------------------------------------------------------------------------------


async def streamed(request: Request, completion: Completion) -> Response:
    """Return the answer as a stream, or a failure if it fails before its first chunk.

    Faults of the request show before that chunk, so they can have a status of their own.
    """
    stream = Stream(request, completion)
    first = await stream.next()
    if isinstance(first, InpageError):
        return failure(first)
    return StreamingResponse(stream.events(first), media_type="text/event-stream")


class Stream:
    """The chunks of an answer, as the events of server-sent events."""

    def __init__(self, request: Request, completion: Completion) -> None:
        self._cancel = CancelToken()
        self._watching = asyncio.create_task(cancel_when_gone(request, self._cancel))
        self._chunks: asyncio.Queue[Json | InpageError | None] = asyncio.Queue()
        self._work = asyncio.create_task(self._produce(completion))

    async def _produce(self, completion: Completion) -> None:
        try:
            await completion.chunks(self._cancel, self._chunks.put_nowait)
        except InpageError as error:
            self._chunks.put_nowait(error)
        finally:
            self._chunks.put_nowait(None)
            self._watching.cancel()

    async def next(self) -> Json | InpageError | None:
        return await self._chunks.get()

    async def events(self, first: Json | None) -> AsyncIterator[bytes]:
        """Being closed, for the caller has gone, stops the answer."""
        chunk: Json | InpageError | None = first
        try:
            while chunk is not None:
                found = error_json(chunk) if isinstance(chunk, InpageError) else chunk
                yield event(dumps(found))
                chunk = await self.next()
            yield event("[DONE]")
        finally:
            self._cancel.cancel()
            await asyncio.shield(self._work)


def event(data: str) -> bytes:
    """One of server-sent events."""
    return f"data: {data}\n\n".encode()


# Errors ----------------------------------------------------------------------------------------


def failure(error: InpageError) -> Response:
    """Return an error as a response, with the status that OpenAI's clients know."""
    return ApiResponse(error_json(error), status_code=status_of(error))


def status_of(error: InpageError) -> int:
    """Return the HTTP status of an error: 4xx for the caller's faults, 5xx for ours."""
    if isinstance(error, BodyError):
        return error.status
    if isinstance(error, RequestError):
        return NOT_FOUND if error.param == "model" else BAD_REQUEST
    return BAD_REQUEST if isinstance(error, CALLERS_FAULTS) else FAULT


def error_json(error: InpageError) -> Json:
    """Return an error in OpenAI's shape, with the facts that a program may want to know."""
    kind = "server_error" if status_of(error) == FAULT else "invalid_request_error"
    found = {"message": str(error), "type": kind, "param": None, "code": error.code}
    return {"error": {**found, **error.facts()}}
