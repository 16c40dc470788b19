"""Pages in Chromium, driven by Playwright."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Playwright, Request
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from bench.engines import Engine
from bench.processes import renderer_bytes
from bench.rounds import PageFault, PageTimeout
from tools import browser

OPEN_LIMIT_S = 60
# Pages of Chromium's own would compete with the one that is measured, and count as its memory.
LEFT_OUT = ",".join([*browser.LEFT_OUT, "SpareRendererForSitePerProcess"])
FLAGS = ("--enable-precise-memory-info", f"--disable-features={LEFT_OUT}")
CALL = """async ([method, args]) => {
  try {
    return { result: await globalThis.bench[method](...args) };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
}"""


class DrivenPage:
    """A Chromium with a profile, and one page in it."""

    def __init__(self, playwright: Playwright, url: str, profile: Path) -> None:
        self._profile = profile
        self._requests: list[Request] = []
        self._errors: list[str] = []
        self._context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=browser.find(),
            headless=True,
            args=[*browser.launch_flags(), *FLAGS],
        )
        self._context.on("requestfinished", lambda request: self._requests.append(request))
        self._page = self._context.pages[0]
        self._page.on("pageerror", lambda error: self._errors.append(error.message))
        self._page.goto(url, wait_until="commit", timeout=OPEN_LIMIT_S * 1000)
        self._wait("() => globalThis.bench !== undefined", OPEN_LIMIT_S)

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        try:
            answer = self._wait(CALL, limit_s, [method, arguments])
        except Error as error:  # the page crashed, say
            raise PageFault(str(error).splitlines()[0]) from None
        if "error" in answer:
            raise PageFault(answer["error"])
        return answer["result"]

    def _wait(self, function: str, limit_s: float, argument: Any = None) -> Any:
        """Wait for what the function resolves to; unlike evaluate(), this can run out of time."""
        try:
            handle = self._page.wait_for_function(function, arg=argument, timeout=limit_s * 1000)
        except PlaywrightTimeout:
            if self._errors:
                raise PageFault(self._errors[0]) from None
            raise PageTimeout(f"not done after {limit_s:.0f} s") from None
        return handle.json_value()

    def fetched_bytes(self) -> int:
        """Bodies as they came over the network; what a cache answered came from nowhere.

        What the service worker looks at again in the background is left out: Playwright never
        tells the sizes of some of that.
        """
        sizes = [request.sizes() for request in self._requests if not request.service_worker]
        return sum(max(size["responseBodySize"], 0) for size in sizes)

    def renderer_bytes(self) -> int | None:
        return renderer_bytes(self._profile)

    def close(self) -> None:
        self._context.close()


def page_opener(playwright: Playwright, address: str) -> Any:
    """Return the function that rounds.py opens each engine's page with."""

    def open_page(engine: Engine, profile: Path) -> DrivenPage:
        return DrivenPage(playwright, address + engine.page, profile)

    return open_page
