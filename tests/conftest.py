"""Servers and the browser that all tests share."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base.defaults import DEVICE_VARIABLE

# Before anything loads PyTorch or NumPy. Tests run as many at once as there are cores: threads that
# wait for each other in tiny matrices spin, and took four fifths of the time of some files.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The adapter here is software, which nobody would choose; but most tests are of kernels for GPUs.
# Commands that are started take it over; pages compute on the CPU unless a test asks (`serving`).
os.environ.setdefault(DEVICE_VARIABLE, "gpu")

from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, expect

from tests.order import CostliestFirst
from tests.runners import (  # noqa: F401  (fixtures)
    PATIENCE,
    cpu,
    in_page,
    native,
    patient,
    runner,
    shared_browser,
    toy,
    toy_page,
)
from tests.second_tries import SecondTries
from tests.tiers import Tiers
from tests.toy_model import NAME, SECOND, write_toy_model
from tools.browser import find, flags_for_tests
from tools.files import ROOT

START_SECONDS = 120
# In pages of a few tests V8's first compiler of WebAssembly is enough: its second one would take a
# second for Python's main loop, in each of them. Nor do they need a collector with threads of its
# own. Pages that all tests share have both: runners.py.
ONE_COMPILER = "--js-flags=--liftoff-only --single-threaded-gc"
expect.set_options(timeout=PATIENCE)  # a busy machine is not the page's fault
# Nor is it one of the code, and every run tries the same.
settings.register_profile(
    "inpage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("inpage")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tiers(config.option.markexpr))
    if hasattr(config, "workerinput"):  # one of several workers
        config.pluginmanager.register(CostliestFirst())
    config.pluginmanager.register(SecondTries())


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=START_SECONDS)


def first_line(process: subprocess.Popen[str]) -> str:
    """Return what a process prints first; one that prints nothing for two minutes is ended."""
    assert process.stdout
    overdue = threading.Timer(START_SECONDS, process.kill)
    overdue.start()
    try:
        return process.stdout.readline().strip()
    finally:
        overdue.cancel()


@contextmanager
def serving(*options: str, device: str = "cpu") -> Iterator[str]:
    """Run a real serve.py on a free port and yield its address, which ends with a slash.

    Its pages compute on this device; without a name, each chooses. The CPU has no shaders to
    compile: a page starts and answers several times sooner than on a GPU that is software.
    """
    command = [sys.executable, "serve.py", "--port", "0", *options]
    environment = {**os.environ, DEVICE_VARIABLE: device}
    with running(command, cwd=ROOT, env=environment) as process:
        line = first_line(process)
        assert line.startswith("inpage is at http://127.0.0.1:"), f"serve.py said {line!r}"
        yield line.removeprefix("inpage is at ")


@pytest.fixture(scope="session", autouse=True)
def no_service_workers() -> Iterator[None]:
    """Block service workers unless a test wants them: their fetches pass a page's routes by."""
    new_context, new_page = Browser.new_context, Browser.new_page
    with pytest.MonkeyPatch.context() as patch:
        blocked = {"service_workers": "block"}
        patch.setattr(Browser, "new_context", lambda self, **o: new_context(self, **blocked | o))
        patch.setattr(Browser, "new_page", lambda self, **o: new_page(self, **blocked | o))
        yield


@pytest.fixture(scope="session")
def site_url() -> Iterator[str]:
    """Serve this checkout's page with its default model, on the GPU."""
    with serving(device="gpu") as address:
        yield address


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the toy's model folder, once."""
    return write_toy_model(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def two_models(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the toy and another model, of another family."""
    models = tmp_path_factory.mktemp("two_models")
    shutil.copytree(toy_model, models / NAME)
    write_toy_model(models, SECOND, "tinyllama")
    return models


@pytest.fixture(scope="session")
def toy_site_url(toy_model: Path) -> Iterator[str]:
    """Serve this checkout's page with the toy as its only model, on the CPU."""
    with serving("--models", str(toy_model.parent)) as address:
        yield address


@pytest.fixture(scope="session")
def gpu_toy_site_url(toy_model: Path) -> Iterator[str]:
    """Serve the same as toy_site_url, on the GPU."""
    with serving("--models", str(toy_model.parent), device="gpu") as address:
        yield address


@pytest.fixture(scope="session")
def choosing_site_url(toy_model: Path) -> Iterator[str]:
    """Serve the same as toy_site_url; but the page chooses its device by itself."""
    with serving("--models", str(toy_model.parent), device="") as address:
        yield address


@pytest.fixture(scope="session")
def static_site() -> Iterator[Path]:
    """Return the folder that `serve.py build` writes."""
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "site"
        subprocess.run([sys.executable, "serve.py", "build", str(out)], cwd=ROOT, check=True)
        yield out


@contextmanager
def serving_folder(folder: Path) -> Iterator[str]:
    """Run a plain file server that knows nothing about what it serves, and yield its address."""
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
    with running(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        line = first_line(process)  # … port 12345 (http://127.0.0.1:12345/) ...
        address = re.search(r"http://[^)]+", line)
        assert address, f"http.server said {line!r}"
        yield address[0]


@pytest.fixture(scope="session")
def static_site_url(static_site: Path) -> Iterator[str]:
    """Serve the static build in a subfolder."""
    with serving_folder(static_site.parent) as address:
        yield f"{address}{static_site.name}/"


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """pytest-playwright starts the Chromium that tools.browser finds, with WebGPU."""
    return {
        **browser_type_launch_args,
        "executable_path": str(find()),
        "args": [*flags_for_tests(), ONE_COMPILER],
    }


@pytest.fixture(scope="session")
def browser(browser: Browser) -> Browser:
    return patient(browser)
