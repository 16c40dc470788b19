"""Runners of the same test code natively (wgpu-py) and in the page (Pyodide in Chromium).

A case is an async function in a module that imports numpy and py_runtime alone. Its first argument
is the device; the others, and what it returns, are plain values and arrays.
"""

import asyncio
import base64
import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from py_runtime.app.software_gpu import use_browsers_vulkan
from tests import compiled_sooner, packing
from tests.toy_model import NAME
from tools.browser import flags_for_tests

T = TypeVar("T")
PATIENCE = 120_000  # milliseconds
# The page's heap never shrinks: what it grows by while a model loads is what that needs at once. It
# grows by a fifth each time; the tokenizer is read while weights are in its hands.
HEAP = "from inpage_bridge import bridge\nbridge.heapBytes()"
MAX_GROWTH = 40 << 20

SHIP = """
import importlib, pathlib, sys
root = pathlib.Path("/home/shipped")
if str(root) not in sys.path:
    sys.path.append(str(root))
for name, source in {modules!r}.items():
    path = root.joinpath(*name.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
importlib.invalidate_caches()
"""
CALL = """
from base64 import b64decode
import tests.packing, {module}
_arguments = tests.packing.unpack(b64decode({arguments!r}))
tests.packing.pack(await {module}.{function}({device}, **_arguments))
"""
IMPORTED = re.compile(r"^from (tests\.[\w.]+) import", re.MULTILINE)
RUN_SCRIPT = """code => inpage.python(code).then(
    value => ({value}), error => ({error: error.traceback ?? error.message})
)"""


# Playwright keeps an event loop running in the main thread, where no second one can run.
_coroutines = ThreadPoolExecutor(max_workers=1)


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, from plain test code."""
    return in_a_thread(asyncio.run, coroutine)


def in_a_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that has an event loop of its own."""
    return _coroutines.submit(function, *arguments).result()


class Runner(Protocol):
    name: str

    def run(self, module: str, function: str, **arguments: Any) -> Any: ...


class NativeRunner:
    name = "native"

    def __init__(self) -> None:
        use_browsers_vulkan()
        from py_runtime import gpu

        self.device = wait(gpu.request_device())
        compiled_sooner.compile_sooner(self.device)

    def run(self, module: str, function: str, **arguments: Any) -> Any:
        case = getattr(importlib.import_module(module), function)
        return wait(case(self.device, **packing.unpack(packing.pack(arguments))))


class CpuRunner:
    name = "cpu"

    def __init__(self) -> None:
        from py_runtime.cpu.native import request_cpu

        self.device = wait(request_cpu())

    def run(self, module: str, function: str, **arguments: Any) -> Any:
        case = getattr(importlib.import_module(module), function)
        return wait(case(self.device, **packing.unpack(packing.pack(arguments))))


class ShippingRunner(ABC):
    """A runner whose cases travel to where Python runs; only the way there differs."""

    name: str

    def __init__(self, device: str = "device") -> None:
        """`device`: the name of the cases' device among the names that Python has there."""
        self._device = device
        self._shipped: set[str] = set()

    def run(self, module: str, function: str, **arguments: Any) -> Any:
        self._ship(module)
        packed = base64.b64encode(packing.pack(arguments)).decode()
        call = CALL.format(module=module, function=function, device=self._device, arguments=packed)
        answer = self.python(call)
        return packing.unpack(base64.b64decode(answer["base64"]))

    @abstractmethod
    def python(self, code: str) -> Any:
        """Run Python in the page; an exception there fails the test with its traceback."""

    def compile_sooner(self) -> None:
        """Rewrite the page's kernels as the native ones are."""
        module = compiled_sooner.__name__
        self._ship(module)
        self.python(f"import {module}; {module}.compile_sooner(device)")

    def _ship(self, module: str) -> None:
        if module in self._shipped:
            return
        sources = {"tests.packing": inspect.getsource(packing), **_sources(module)}
        self.python(SHIP.format(modules=sources))
        self._shipped.add(module)


def _sources(module: str) -> dict[str, str]:
    """Return a module's source and those of the modules of tests that it imports."""
    source = inspect.getsource(importlib.import_module(module))
    found = {module: source}
    for name in IMPORTED.findall(source):
        found |= _sources(name)
    return found


class PageRunner(ShippingRunner):
    name = "page"

    def __init__(self, page: Page, device: str = "device") -> None:
        super().__init__(device)
        self.page = page

    def python(self, code: str) -> Any:
        outcome = self.page.evaluate(RUN_SCRIPT, code)
        if outcome.get("error"):
            raise AssertionError(f"in the page:\n{outcome['error']}")
        return outcome["value"]


@pytest.fixture(scope="session")
def native() -> NativeRunner:
    return NativeRunner()


@pytest.fixture(scope="session")
def cpu() -> CpuRunner:
    return CpuRunner()


@pytest.fixture(scope="session")
def shared_browser(
    playwright: Playwright, browser_type_launch_args: dict[str, Any]
) -> Iterator[Browser]:
    """Start one browser for all tests.

    pytest-playwright's own starts anew when tests that name a browser take turns with tests that do
    not.
    """
    browser = playwright.chromium.launch(**browser_type_launch_args | {"args": flags_for_tests()})
    yield patient(browser)
    browser.close()


def patient(browser: Browser) -> Browser:
    """Make all pages wait longer than half a minute for a page or an element.

    This machine may have other things to do.
    """
    browser.on("context", lambda context: context.set_default_timeout(PATIENCE))
    return browser


@pytest.fixture(scope="session")
def in_page(shared_browser: Browser, site_url: str) -> Iterator[PageRunner]:
    """Start one page for the whole run: starting Python takes longer than most tests."""
    with started_page(shared_browser, site_url) as runner:
        runner.compile_sooner()
        yield runner


@pytest.fixture(scope="session")
def toy_page(shared_browser: Browser, gpu_toy_site_url: str) -> Iterator[PageRunner]:
    """Start one page for the site that has the toy model, on the GPU."""
    with started_page(shared_browser, gpu_toy_site_url) as runner:
        yield runner


@contextmanager
def started_page(browser: Browser | BrowserContext, address: str) -> Iterator[PageRunner]:
    page = browser.new_page()
    page.goto(address)
    page.evaluate("inpage.ready.then(() => null)")
    yield PageRunner(page)
    page.close()


@pytest.fixture(
    params=["native", pytest.param("page", marks=pytest.mark.browser)],
)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Run the test twice: natively and in the page."""
    name = "in_page" if request.param == "page" else "native"
    found: Runner = request.getfixturevalue(name)
    return found


@dataclass(frozen=True)
class PlacedToy:
    """The toy model where it can be loaded: natively from its folder, in a page from its site."""

    runner: Runner
    where: str


@pytest.fixture(params=["native", pytest.param("page", marks=pytest.mark.browser)])
def toy(request: pytest.FixtureRequest, toy_model: Path) -> PlacedToy:
    """Run the test twice: natively and in the page."""
    if request.param == "native":
        return PlacedToy(request.getfixturevalue("native"), str(toy_model))
    address = request.getfixturevalue("gpu_toy_site_url")
    return PlacedToy(request.getfixturevalue("toy_page"), f"{address}models/{NAME}/")
