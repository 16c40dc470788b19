"""Packages as `make package` writes them, in an empty project; another origin; torch's tokens."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.background import answering
from tests.conftest import serving_folder
from tests.toy_model import Greedy, greedy_of
from tools.package import package


@dataclass(frozen=True)
class Packages:
    wheel: Path
    tarball: Path


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(*package(tmp_path_factory.mktemp("packages")))


@pytest.fixture(scope="session")
def project(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that has nothing but the npm package, as npm installs it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"type": "module"}')
    command = ["npm", "install", "--offline", "--no-audit", "--no-fund", str(packages.tarball)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def project_url(project: Path) -> Iterator[str]:
    """Serve the project by a plain server: no header of it helps the engine."""
    with serving_folder(project) as address:
        yield address


class Open(SimpleHTTPRequestHandler):
    """A handler that lets pages of any origin read."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def serving_openly(folder: Path) -> Iterator[str]:
    """Serve a folder from another origin and yield its address, which ends with a slash."""
    handler = partial(Open, directory=str(folder))
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address


@pytest.fixture(scope="session")
def models_url(toy_model: Path) -> Iterator[str]:
    """Serve the models from another origin; the address ends with a slash."""
    with serving_openly(toy_model.parent) as address:
        yield address


@pytest.fixture(scope="session")
def greedy(toy_model: Path) -> Greedy:
    return greedy_of(toy_model)
