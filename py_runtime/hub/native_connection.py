"""Requests by Python's own library, in a thread each."""

import asyncio
import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from py_runtime.base.errors import NetworkError

PATIENCE_SECONDS = 60  # without a byte
TOKEN_HEADER = "Authorization"
FAULTS = (OSError, http.client.HTTPException)  # URLError is an OSError


class NativeConnection:
    """A Connection."""

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(_Redirects)

    async def open(self, url: str, headers: Mapping[str, str]) -> "_ReadAnswer":
        request = urllib.request.Request(url, headers=dict(headers))
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: urllib.request.Request) -> "_ReadAnswer":
        try:
            return _ReadAnswer(self._opener.open(request, timeout=PATIENCE_SECONDS))
        except urllib.error.HTTPError as error:  # an answer like any other
            return _ReadAnswer(error)
        except FAULTS as error:
            raise _fault(request.full_url, error) from None


class _ReadAnswer:
    def __init__(self, response: Any) -> None:
        self.status = int(response.status)
        self.headers = {name.lower(): text for name, text in response.headers.items()}
        self._response = response

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        try:
            count = await asyncio.to_thread(self._response.readinto, memory.data)
        except FAULTS as error:
            raise _fault(self._response.url, error) from None
        return memory[:count]

    def close(self) -> None:
        self._response.close()


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The library would tell the token to whoever it is led to."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        further = super().redirect_request(req, fp, code, msg, headers, newurl)
        if further is not None and urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            further.remove_header(TOKEN_HEADER)
        return further


def _fault(url: str, error: Exception) -> NetworkError:
    reason = getattr(error, "reason", None) or error
    return NetworkError(f"{urlsplit(url).netloc} did not answer, or not to the end: {reason}")
