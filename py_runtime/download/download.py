"""The downloader: brings one file from a host to a shelf, and past a sink on its way.

It goes on behind what an earlier download left, tries again where an answer breaks off, hashes what
passes, and waits for another tab that downloads the same file. The callers choose the host (this
site, the Hub or another), the shelf (the browser's storage, a cache folder, or none) and the sink.
"""

from collections.abc import Awaitable
from contextlib import closing
from typing import Protocol

import numpy as np

from py_runtime.base.errors import NetworkError, QuotaError, StorageBusyError, StorageError
from py_runtime.base.file_blocks import BLOCK_UNIT, FileBlocks
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.patience import SlowError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.base.shapes import round_up
from py_runtime.base.sizes import in_words
from py_runtime.download.connection import READ_BYTES
from py_runtime.download.file_check import ExpectedFile, FileCheck
from py_runtime.download.remote_file import RemoteFile
from py_runtime.download.retries import Retries
from py_runtime.download.shelf import Partial, Shelf


class Sink(Protocol):
    """A receiver of a file's blocks in order; one at position 0 may come again, to begin anew.

    Whether the bytes are right is known at the end only. Every block but the last has a multiple
    of BLOCK_UNIT bytes.
    """

    def __call__(self, position: int, block: np.ndarray) -> Awaitable[None]: ...


async def discard(position: int, block: np.ndarray) -> None:
    """Do nothing: the sink of a file that is only to be checked, or kept."""


class Download:
    """The download of one file."""

    def __init__(
        self,
        expected: ExpectedFile,
        remote: RemoteFile,
        shelf: Shelf,
        meter: Meter,
        sink: Sink = discard,
    ) -> None:
        self._expected = expected
        self._facts = expected.facts
        self._remote = remote
        self._shelf = shelf
        self._meter = meter
        self._sink = sink
        self._check = FileCheck(expected)

    async def run(self) -> bool:
        """Bring the file; return False if another tab has kept it first: the sink got nothing.

        Wherever it breaks off, what has arrived stays on the shelf.
        """
        async with self._shelf.take_turn(self._facts, self._report):
            if self._shelf.has(self._facts):
                self._report(self._facts.size)
                return False
            await self._bring()
            return True

    def _report(self, arrived: int) -> None:
        self._meter.reach(DOWNLOAD, self._expected.name, min(arrived, self._facts.size))

    async def _bring(self) -> None:
        """Go on behind what is there; if that turns out to be wrong, begin anew."""
        begun = self._shelf.begun_bytes(self._facts)
        if begun:
            try:
                return await self._bring_from(begun)
            except StorageBusyError:
                pass  # another tab is writing to it, so it is not ours to drop
            except (ModelFileError, ModelHashError):
                await self._shelf.drop_begun(self._facts)
        await self._bring_from(0)

    async def _bring_from(self, begun: int) -> None:
        if begun < self._facts.size:
            begun -= begun % BLOCK_UNIT
        self._check = FileCheck(self._expected)
        partial = await self._shelf.begin(self._facts, begun)
        try:
            await self._pass_on_begun(begun)
            await self._receive_all(partial)
            self._check.finish()
            await partial.keep(self._facts)
        except (ModelFileError, ModelHashError):
            await partial.drop()
            raise
        except SlowError as error:
            await partial.leave()
            raise self._tell_what_is_kept(error) from None
        except QuotaError as error:
            await partial.leave()
            raise QuotaError(
                f"{self._expected.name} stopped at "
                f"{in_words(self._shelf.begun_bytes(self._facts))} of "
                f"{in_words(self._facts.size)}, since this browser's storage is full ({error}): "
                "delete models that are kept, or free space on this disk, then load it again; what "
                "has arrived stays"
            ) from None
        except BaseException:
            await partial.leave()
            raise

    async def _pass_on_begun(self, begun: int) -> None:
        """Hash what is there, and hand it to the sink; an unreadable beginning is a wrong one."""
        if not begun:
            return
        try:
            with closing(await self._shelf.open_begun(self._facts)) as blocks:
                await self._pass_on(blocks, self._sink, begun)
        except StorageError as error:
            raise ModelFileError(f"what is kept of {self._expected.name}: {error}") from None
        if self._check.position < begun:
            raise ModelFileError(f"some of {self._expected.name} is no longer kept")

    async def _receive_all(self, partial: Partial) -> None:
        retries = Retries()
        while self._check.position < self._facts.size:
            before = self._check.position
            try:
                await self._receive(partial)
            except NetworkError as error:
                await retries.pause_after(error, self._check.position - before)

    async def _receive(self, partial: Partial) -> None:
        """Take as much as one answer gives; each is a request anew, since redirects expire."""

        async def write(position: int, block: np.ndarray) -> None:
            await self._sink(position, block)
            await partial.write(block)

        part = await self._remote.open(self._check.position)
        with closing(part.answer) as answer:
            self._check.check_size(part.file_size)
            await self._skip(answer, self._check.position - part.start)
            await self._pass_on(answer, write)
        if self._check.position < self._facts.size:
            raise NetworkError(
                f"{self._expected.name} broke off after {self._check.position} of "
                f"{self._facts.size} bytes"
            )

    async def _skip(self, blocks: FileBlocks, count: int) -> None:
        """Read over bytes that are there already, which a host without ranges sends again."""
        memory = self._allocate()
        while count and len(block := await blocks.next_block(memory[:count])):
            count -= len(block)

    async def _pass_on(self, blocks: FileBlocks, sink: Sink, end: int | None = None) -> None:
        """Check the blocks, as far as `end` if it is given, and hand them over in whole units."""
        memory, held = self._allocate(), 0
        while (at := self._check.position) != end:
            block = await blocks.next_block(memory[held : None if end is None else end - at])
            if not len(block):
                break
            filled = held + len(block)
            is_last = at + filled >= self._facts.size
            held = 0 if is_last else filled % BLOCK_UNIT  # until the rest of its unit has come
            whole = memory[: filled - held]
            if len(whole):
                self._check.take(whole)
                await sink(at, whole)
                self._report(self._check.position)
                memory[:held] = memory[len(whole) : filled]

    def _allocate(self) -> np.ndarray:
        """Allocate memory for a block, or for the whole file and a byte that it should not have."""
        return np.empty(min(READ_BYTES, round_up(self._facts.size + 1, BLOCK_UNIT)), np.uint8)

    def _tell_what_is_kept(self, error: SlowError) -> SlowError:
        """Return the error of a slow host, with how far the file has come if that is kept."""
        kept = self._shelf.begun_bytes(self._facts)
        if not kept:
            return error
        return SlowError(
            f"{error}; {in_words(kept)} of the {in_words(self._facts.size)} of "
            f"{self._expected.name} have arrived and are kept: a download goes on from there when "
            "it is asked for again"
        )
