"""Recovery from a lost device: every computation that must survive a loss goes through here.

A loss takes everything on the GPU with it. The owner says how to forget it and how to build it
again; this module decides when.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, nullcontext
from typing import Any, TypeVar

from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import GpuDeviceLostError
from py_runtime.base.messages import Message, message
from py_runtime.gpu import Device
from py_runtime.gpu.one_device import newest, replacement

MAX_LOSSES = 5  # in a row, before the device is given up

T = TypeVar("T")


class Recovery:
    """Replaces a lost device for the owner of what was on it.

    `replace` rebuilds on another device what was on the lost one; `forget` drops what is known of
    its memory. Users are told, unless nothing of theirs was on it (`quiet`).
    """

    def __init__(
        self,
        replace: Callable[[], Coroutine[Any, Any, None]],
        forget: Callable[[], None] = lambda: None,
        quiet: bool = False,
    ) -> None:
        self._replace = replace
        self._forget = forget
        self._quiet = quiet
        self._is_lost = False  # the device, until it is replaced

    async def survive(
        self,
        work: Callable[[], Awaitable[T]],
        cancel: CancelToken | None = None,
        alone: asyncio.Lock | None = None,
    ) -> T:
        """Run the work, again from the start whenever the device is lost, and return its result.

        The caller notices nothing but the time, and can cancel the replacement, which may wait for
        a network. A caller that does not hold the lock `alone` yet passes it.
        """
        lost = GpuDeviceLostError("the GPU device was lost")
        for _ in range(MAX_LOSSES):
            try:
                async with alone or nullcontext():
                    await self._recover(cancel)
                return await work()
            except GpuDeviceLostError as error:
                async with alone or nullcontext():
                    self.lose(error)
                lost = error
        raise lost

    async def survive_each(
        self, rest: Callable[[], AsyncGenerator[T, None]], cancel: CancelToken
    ) -> AsyncGenerator[T, None]:
        """Yield results; after a loss, ask `rest` for those that have not come yet.

        Each result proves that the device works.
        """
        losses = 0
        while True:
            try:
                await self._recover(cancel)
                async with aclosing(rest()) as coming:
                    async for each in coming:
                        losses = 0
                        yield each
                return
            except GpuDeviceLostError as error:
                self.lose(error)
                losses += 1
                if losses == MAX_LOSSES:
                    raise

    async def attempt(self, work: Awaitable[object]) -> None:
        """Run work that may stay undone; whatever must be computed next replaces a lost device."""
        try:
            await work
        except GpuDeviceLostError as error:
            self.lose(error)

    def lose(self, error: GpuDeviceLostError) -> None:
        """Record that the device and everything on it are gone, and tell users once."""
        if not self._is_lost:
            self._tell("device_lost", message("device_lost", reason=error.wording))
        self._is_lost = True
        self._forget()

    async def _recover(self, cancel: CancelToken | None) -> None:
        """Replace the device if it is gone; if that fails, the next call tries again."""
        if self._is_lost:
            if cancel is not None:
                cancel.check()
            await until_cancelled(self._replace(), cancel)
            self._is_lost = False
            self._tell("recovered", message("device_recovered"))

    def _tell(self, kind: str, said: Message) -> None:
        if not self._quiet:
            notices.post(kind, said)


async def load_onto(
    device: Device, load: Callable[[Device], Awaitable[T]], cancel: CancelToken | None
) -> T:
    """Load onto the device, or onto the one that replaces it.

    The device may have been lost long ago, while nobody used it; users are not told of that.
    """
    at_hand = newest(device)

    async def take_another() -> None:
        nonlocal at_hand
        at_hand = await replacement(at_hand)

    return await Recovery(take_another, quiet=True).survive(lambda: load(at_hand), cancel)
