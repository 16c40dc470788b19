"""A page whose server can be told to fail, and a browser's storage that begins empty."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Playwright

from tests.folder.faulty_site import FaultySite, serving_with_faults
from tests.runners import NativeRunner, PageRunner
from tests.web.user import keep_from_loading_stored

CASES = "tests.folder.loading_cases"


class LoadingPage:
    """A page with an engine; calls go to tests/folder/loading_cases.py."""

    def __init__(self, context: BrowserContext, site: FaultySite) -> None:
        self.site = site
        self.context = context
        self.runner = self.open_tab()

    def open_tab(self, device: str = "cpu") -> PageRunner:
        page = self.context.new_page()
        keep_from_loading_stored(page)
        page.goto(f"{self.site.url}?device={device}")
        page.evaluate("inpage.ready.then(() => null)")
        runner = PageRunner(page)
        runner.python("import py_runtime.download.retries as retries\nretries.FIRST_PAUSE = 0")
        return runner

    def reload(self) -> None:
        self.runner.page.close()
        self.runner = self.open_tab()

    def read_little_at_a_time(self) -> None:
        """Let some of a shard arrive before the rest: the toy's are smaller than a block."""
        self.runner.python("import py_runtime.download.download as one\none.READ_BYTES = 1024")

    def address(self, model: str = "Toy") -> str:
        return f"{self.site.url}models/{model}/"

    def run(self, function: str, **arguments: Any) -> Any:
        return self.runner.run(CASES, function, **arguments)

    def load(self, model: str = "Toy", **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.run("load", where=self.address(model), **arguments)
        return result


@pytest.fixture(scope="session")
def models(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the toy, and a twin that differs in its name and in one small file."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("Toy", "Twin"):
        shutil.copytree(toy_model, folder / name)
    rewrite(folder / "Twin", "config.json", b"\n", name="Twin")
    return folder


def rewrite(folder: Path, file: str, more: bytes, **facts: Any) -> None:
    """Another version of a model: a file grows, and the manifest says so."""
    from tools.files import sha256_of

    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / file).write_bytes((folder / file).read_bytes() + more)
    manifest["files"][file] = {
        "size": (folder / file).stat().st_size,
        "sha256": sha256_of(folder / file),
    }
    manifest["size"] += len(more)
    (folder / "manifest.json").write_text(json.dumps({**manifest, **facts}))


@pytest.fixture(scope="session")
def faulty_site(models: Path) -> Iterator[FaultySite]:
    with serving_with_faults(models) as site:
        yield site


@pytest.fixture(scope="session")
def one_page(
    playwright: Playwright,
    browser_type_launch_args: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    faulty_site: FaultySite,
) -> Iterator[LoadingPage]:
    """Storage is on a disk: that of a private window does not say when a file was changed."""
    profile = tmp_path_factory.mktemp("profile")
    context = playwright.chromium.launch_persistent_context(
        profile, **browser_type_launch_args, service_workers="block"
    )
    yield LoadingPage(context, faulty_site)
    context.close()


@pytest.fixture
def page(one_page: LoadingPage) -> Iterator[LoadingPage]:
    """Nothing is stored, nothing is wrong with the server, and nothing was asked of it yet."""
    one_page.run("empty_storage")
    one_page.site.take_requests()
    yield one_page
    one_page.site.faults.clear()
    one_page.site.broken_off.clear()


@pytest.fixture(scope="session")
def manifest(toy_model: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((toy_model / "manifest.json").read_text())
    return loaded


@pytest.fixture(scope="session")
def logits(native: NativeRunner, toy_model: Path) -> np.ndarray:
    """Return the logits that a right load computes."""
    result = native.run("tests.folder.loading_cases", "load", where=str(toy_model))
    found: np.ndarray = result["logits"]
    return found


@pytest.fixture
def check_loaded(logits: np.ndarray) -> Any:
    def check(result: dict[str, Any]) -> None:
        assert result["error"] is None
        np.testing.assert_allclose(result["logits"], logits, rtol=1e-3, atol=1e-4)
        assert result["buffers left"] == 0

    return check
