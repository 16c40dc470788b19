"""A file on its way from the Hub to the shelf: hashed as it comes, resumed where it broke off."""

import asyncio
import hashlib
from contextlib import aclosing

import numpy as np

from py_runtime.base.errors import NetworkError, NotFoundError, QuotaError
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.patience import SlowError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.base.sizes import in_words
from py_runtime.folder.manifest import FileFacts
from py_runtime.hub.connection import READ_BYTES
from py_runtime.hub.errors import HubError, RefusedError
from py_runtime.hub.requests import FileRequests
from py_runtime.hub.shelf import Partial, Shelf

MAX_FAILURES = 4  # one after the other, without much between them
MUCH = 64 << 10  # bytes: a host that sends less each time would keep a download going forever
FIRST_PAUSE = 0.5  # seconds; twice as long each time
FOR_GOOD = (400, 401, 404, 410, 416, 429)  # what another try would not change, or not soon


class Download:
    """One file; `listed_by` tells in messages whose list it is checked against."""

    def __init__(
        self,
        name: str,
        facts: FileFacts,
        shelf: Shelf,
        requests: FileRequests,
        meter: Meter,
        listed_by: str = "the Hub lists",
    ) -> None:
        self._name = name
        self._facts = facts
        self._shelf = shelf
        self._requests = requests
        self._meter = meter
        self._listed_by = listed_by
        self._position = 0
        self._sha256 = hashlib.sha256()

    async def run(self) -> None:
        """Until it is kept, by this tab or another; what has come stays where one breaks off."""
        async with self._shelf.turn(self._facts, self._reach):
            if self._shelf.has(self._facts):
                self._reach(self._facts.size)
            else:
                await self._download()

    def _reach(self, begun: int) -> None:
        self._meter.reach(DOWNLOAD, self._name, min(begun, self._facts.size))

    async def _download(self) -> None:
        begun = self._shelf.begun_bytes(self._facts)
        partial = await self._shelf.begin(self._facts, begun if self._may_go_on(begun) else 0)
        try:
            await self._take_begun(begun)
            await self._receive_all(partial)
            found = self._sha256.hexdigest()
            if found != self._facts.sha256:
                raise ModelHashError(
                    f"{self._name} is not the file that {self._listed_by}: its sha256 is {found}, "
                    f"but should be {self._facts.sha256}",
                    "load it again",
                )
            await partial.keep(self._facts)
        except (ModelFileError, ModelHashError):
            await partial.drop()
            raise
        except QuotaError as error:
            await partial.leave()
            raise QuotaError(
                f"{self._name} stopped at {in_words(self._position)} of "
                f"{in_words(self._facts.size)}, since this browser's storage is full ({error}): "
                "delete models that are kept, or free space on this disk, then load it again; what "
                "has arrived stays"
            ) from None
        except BaseException:
            await partial.leave()
            raise

    def _may_go_on(self, begun: int) -> bool:
        return 0 < begun <= self._facts.size

    async def _take_begun(self, begun: int) -> None:
        """Its hash, too, goes on from there."""
        if not self._may_go_on(begun):
            return
        source = self._shelf.begun(self._facts)
        async with aclosing(source.pieces([0, begun])) as pieces:
            async for _, piece in pieces:
                self._sha256.update(piece.data)
        self._position = begun
        self._reach(begun)

    async def _receive_all(self, partial: Partial) -> None:
        failures = 0
        while self._position < self._facts.size:
            before = self._position
            try:
                await self._receive(partial)
            except SlowError as error:
                size = in_words(self._facts.size)
                raise SlowError(
                    f"{error}; {in_words(self._position)} of the {size} of {self._name} have "
                    "arrived and are kept: a download goes on from there when it is asked for again"
                ) from None
            except NetworkError as error:
                failures = 0 if self._position - before >= MUCH else failures + 1
                if failures > MAX_FAILURES or is_for_good(error):
                    raise
                await asyncio.sleep(FIRST_PAUSE * 2**failures if failures else 0)

    async def _receive(self, partial: Partial) -> None:
        """As much as one answer gives. Each is asked of the Hub anew: its redirects expire."""
        start, answer = await self._requests.open(self._position)
        memory = np.empty(READ_BYTES, np.uint8)
        skipped = self._position - start
        try:
            while len(block := await answer.next_block(memory)):
                rest = block[skipped:]
                skipped -= len(block) - len(rest)
                if self._position + len(rest) > self._facts.size:
                    raise ModelFileError(
                        f"{self._name} has more than the {self._facts.size} bytes that "
                        f"{self._listed_by}",
                        "load it again",
                    )
                if len(rest):
                    self._sha256.update(rest.data)
                    await partial.write(rest)
                    self._position += len(rest)
                    self._reach(self._position)
        finally:
            answer.close()
        if self._position < self._facts.size:
            raise NetworkError(
                f"{self._name} broke off after {self._position} of {self._facts.size} bytes"
            )


def is_for_good(error: NetworkError) -> bool:
    """Whether another try would change nothing."""
    if isinstance(error, HubError):
        return error.status in FOR_GOOD or error.is_told
    return isinstance(error, NotFoundError | RefusedError | SlowError)
