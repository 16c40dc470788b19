"""The time until Stop is heard on the CPU device: python -m bench.stop [--threads 2] [--presses 8].

A model is stopped at moments that are spread over a load, the reading of a long prompt and the
writing of an answer, natively and in the page. What is measured begins when Stop is pressed, which
natively another thread does, and ends when the call has ended.
"""

import argparse
import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from playwright.sync_api import Page

import inpage
from bench.engines import MODEL
from bench.own_page import own_page
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.model import Model, writer
from tools.files import ROOT

LONG, SHORT = 1900, 32  # tokens of prompts
LOAD, PREFILL, DECODE = "a load", "a prompt", "an answer"
SPANS = {LOAD: 0.8, PREFILL: 3.0, DECODE: 1.5}  # seconds over which presses are spread
PRESS = """async ([what, prompt, seconds]) => {
    const controller = new AbortController();
    const { signal } = controller;
    let pressed;
    const press = () => setTimeout(() => {
        pressed = performance.now();
        controller.abort();
    }, 1000 * seconds);
    if (what === "a load") {
        await inpage.unload();
        press();
        await inpage.load(MODEL, { device: "cpu", threads: THREADS, signal }).catch(() => {});
    } else {
        const request = { prompt_token_ids: prompt, temperature: 0, ignore_eos: true };
        if (what === "a prompt") press();
        const sent = { ...request, max_tokens: 100, stream: true, signal };
        const chunks = await inpage.completions.create(sent);
        let isPressed = what === "a prompt";
        for await (const {} of chunks) {
            if (!isPressed) press();
            isPressed = true;
        }
    }
    return pressed === undefined ? null : performance.now() - pressed;
}"""

Stopped = Callable[[CancelToken, Callable[[], None]], Awaitable[None]]


def moments(what: str, presses: int) -> list[float]:
    """Return the seconds after which Stop is pressed, spread evenly."""
    return [SPANS[what] * (at + 0.5) / presses for at in range(presses)]


def prompt_of(length: int, number: int) -> list[int]:
    """Return a prompt that begins unlike all others, so that nothing of it is computed already."""
    return [100 + (7 * at + number) % 1000 for at in range(length)]


def say(where: str, what: str, found: Sequence[float | None]) -> None:
    """Print the milliseconds of the presses that came before the end."""
    heard = [each for each in found if each is not None]
    if not heard:
        print(f"{where}, {what}: it was over before Stop")
        return
    middle, longest = statistics.median(heard), max(heard)
    print(f"{where}, {what}: {middle:.0f} ms, {longest:.0f} at most, of {len(heard)}", flush=True)


# Natively ----------------------------------------------------------------------------------------


async def press(seconds: float, work: Stopped) -> float | None:
    """Return after how many milliseconds the work has ended; None if Stop was not needed."""
    cancel, loop = CancelToken(), asyncio.get_running_loop()
    pressed: list[float] = []

    def stop() -> None:
        pressed.append(time.perf_counter())
        loop.call_soon_threadsafe(cancel.cancel)

    timer = threading.Timer(seconds, stop)
    with suppress(AbortedError):
        await work(cancel, timer.start)
    ended = time.perf_counter()
    timer.cancel()
    return 1000 * (ended - pressed[0]) if pressed else None


async def measure_natively(threads: int, presses: int) -> None:
    """Print how soon Stop is heard of the default model."""
    folder = str(ROOT / "models" / MODEL)

    async def load(cancel: CancelToken, begin: Callable[[], None]) -> None:
        begin()
        model = await inpage.load(folder, device="cpu", threads=threads, cancel=cancel)
        model.unload()

    await load(CancelToken(), lambda: None)  # the first one imports the engine
    say("natively", LOAD, [await press(after, load) for after in moments(LOAD, presses)])
    model = writer(await inpage.load(folder, device="cpu", threads=threads))
    for what in (PREFILL, DECODE):
        found = []
        for number, after in enumerate(moments(what, presses)):
            found.append(await press(after, answering(model, what, number)))
        say("natively", what, found)
    model.unload()


def answering(model: Model, what: str, number: int) -> Stopped:
    """Return work that asks for an answer; where that is what is stopped, since its first token."""
    prompt = prompt_of(LONG if what == PREFILL else SHORT, number)

    async def answer(cancel: CancelToken, begin: Callable[[], None]) -> None:
        waits = what == DECODE
        if not waits:
            begin()
        async for _ in model.complete(
            prompt, max_tokens=100, temperature=0, ignore_eos=True, cancel=cancel
        ):
            if waits:
                begin()
            waits = False

    return answer


# In the page -------------------------------------------------------------------------------------


def measure_in_the_page(threads: int, presses: int) -> None:
    """Print the same of the page, where a script presses Stop."""
    with own_page() as page:
        script = PRESS.replace("MODEL", repr(MODEL)).replace("THREADS", str(threads))
        loading = (
            f"inpage.load({MODEL!r}, {{ device: 'cpu', threads: {threads} }}).then(() => null)"
        )
        page.evaluate(loading)  # fetched once, it is in the browser's storage
        for what in (LOAD, PREFILL, DECODE):
            say("in the page", what, presses_in(page, script, what, presses))
            page.evaluate(loading)


def presses_in(page: Page, script: str, what: str, presses: int) -> list[float | None]:
    """Return the milliseconds of each press."""
    found: list[Any] = []
    for number, after in enumerate(moments(what, presses)):
        prompt = prompt_of(LONG if what == PREFILL else SHORT, number)
        found.append(page.evaluate(script, [what, prompt, after]))
    return found


def main(arguments: list[str]) -> None:
    """Measure both, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.stop")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--presses", type=int, default=8)
    options = parser.parse_args(arguments)
    asyncio.run(measure_natively(options.threads, options.presses))
    measure_in_the_page(options.threads, options.presses)


if __name__ == "__main__":
    main(sys.argv[1:])
