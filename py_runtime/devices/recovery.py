"""Recovery from a lost device: every computation that must survive a loss goes through here.

A loss takes everything on the device with it. The owner says how to forget it and how to build it
again; this module decides when, and when a GPU is given up.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, nullcontext
from typing import Any, TypeVar

from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import GpuDeviceLostError, GpuUnavailableError
from py_runtime.base.messages import Message, message
from py_runtime.devices.one_device import newest, replacement
from py_runtime.gpu import CPU, Device

MAX_LOSSES = 5  # in a row, before the device is given up

Replace = Callable[[], Coroutine[Any, Any, None]]
T = TypeVar("T")


class Recovery:
    """Replaces a lost device for the owner of what was on it.

    `replace` rebuilds on another device what was on the lost one; `give_up` does so on the CPU,
    once a GPU was lost too often, and raises GpuDeviceLostError where it cannot. `forget` drops
    what is known of the lost memory. Users are told, unless nothing of theirs was on it (`quiet`).
    """

    def __init__(
        self,
        replace: Replace,
        give_up: Replace,
        forget: Callable[[], None] = lambda: None,
        quiet: bool = False,
    ) -> None:
        self._replace = replace
        self._give_up = give_up
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
        losses = 0
        while True:
            try:
                async with alone or nullcontext():
                    await self._recover(cancel, losses)
                return await work()
            except GpuDeviceLostError as error:
                async with alone or nullcontext():
                    self.lose(error)
                losses += 1
                if losses > MAX_LOSSES:
                    raise

    async def survive_each(
        self, rest: Callable[[], AsyncGenerator[T, None]], cancel: CancelToken
    ) -> AsyncGenerator[T, None]:
        """Yield results; after a loss, ask `rest` for those that have not come yet.

        Each result proves that the device works.
        """
        losses = 0
        while True:
            try:
                await self._recover(cancel, losses)
                async with aclosing(rest()) as coming:
                    async for each in coming:
                        losses = 0
                        yield each
                return
            except GpuDeviceLostError as error:
                self.lose(error)
                losses += 1
                if losses > MAX_LOSSES:
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

    async def _recover(self, cancel: CancelToken | None, losses: int) -> None:
        """Replace the device if it is gone; if that fails, the next call tries again."""
        if not self._is_lost:
            return
        if cancel is not None:
            cancel.check()
        replace = self._replace if losses < MAX_LOSSES else self._give_up
        try:
            await until_cancelled(replace(), cancel)
        except GpuUnavailableError as error:  # it may come back, as a driver that was updated
            raise GpuDeviceLostError(error.wording) from error
        self._is_lost = False
        if replace == self._replace:  # else one_device.py has told what took its place
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

    async def take_cpu() -> None:
        nonlocal at_hand
        at_hand = await give_up(at_hand)

    recovery = Recovery(take_another, take_cpu, quiet=True)
    return await recovery.survive(lambda: load(at_hand), cancel)


async def give_up(lost: Device) -> Device:
    """Return the CPU in place of a GPU that was lost too often; a CPU has nothing in its place."""
    if lost.kind == CPU:
        raise GpuDeviceLostError(message("processor_lost"))
    return await replacement(lost, by_cpu=True)
