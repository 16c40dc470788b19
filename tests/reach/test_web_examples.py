"""The pages of examples/ that embed the npm package.

They use plain modules, and Vite, as its server has them and bundled, in TypeScript.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import first_line, running, serving_folder
from tests.reach.pyodide_wheels import FOLDER
from tests.reach.readme import DEFAULT
from tests.runners import PATIENCE
from tests.toy_model import NAME
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

PLAIN = ROOT / "examples" / "chat_in_a_page.html"
WITH_VITE = ROOT / "examples" / "with_vite"
VITE = FOLDER / "node_modules" / "vite" / "bin" / "vite.js"
PROGRAMS = [str(folder / "node_modules" / ".bin") for folder in (FOLDER, ROOT)]
COLOURS = re.compile(r"\x1b\[\d+m")


def with_toy(path: Path, models_url: str) -> None:
    """Put addresses of this machine into the example, and make the answer short."""
    text = path.read_text()
    for old, new in {
        "https://models.example.org/": models_url,
        DEFAULT: NAME,
        "stream: true": "stream: true, temperature: 0, max_tokens: 4, ignore_eos: true",
    }.items():
        assert old in text, (path, old)
        text = text.replace(old, new)
    path.write_text(text)


def npm(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PATH": os.pathsep.join([*PROGRAMS, os.environ["PATH"]])}
    done = subprocess.run(
        ["npm", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def vite_project(project: Path, models_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the example with the package installed; Vite itself and tsc are those of the tests."""
    folder = tmp_path_factory.mktemp("vite") / "project"
    shutil.copytree(WITH_VITE, folder)
    shutil.copytree(project / "node_modules", folder / "node_modules")
    npm(folder, "run", "check")
    with_toy(folder / "main.ts", models_url)
    return folder


@contextmanager
def developing(folder: Path) -> Iterator[str]:
    """Run Vite's own server and yield its address."""
    npm(folder, "run", "assets")
    command = ["node", str(VITE), "--host", "127.0.0.1", "--port", "0"]
    with running(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        line = ""
        while process.poll() is None and "Local:" not in line:
            line = COLOURS.sub("", first_line(process))
        yield line.partition("Local:")[2].strip()


def answer_at(browser: Browser, address: str) -> str:
    page = browser.new_page()
    page.goto(address)
    expect(page.locator("#answer")).not_to_be_empty(timeout=2 * PATIENCE)
    expect(page.locator("#progress")).to_have_text("done")
    text = page.locator("#answer").inner_text()
    page.close()
    return text


def test_plain_modules(shared_browser: Browser, project: Path, models_url: str) -> None:
    shutil.copyfile(PLAIN, project / PLAIN.name)
    with_toy(project / PLAIN.name, models_url)
    with serving_folder(project) as address:
        assert answer_at(shared_browser, address + PLAIN.name)


def test_the_server_of_vite(shared_browser: Browser, vite_project: Path) -> None:
    with developing(vite_project) as address:
        assert answer_at(shared_browser, address)


def test_a_bundle_of_vite(shared_browser: Browser, vite_project: Path) -> None:
    npm(vite_project, "run", "build")
    with serving_folder(vite_project / "dist") as address:
        assert answer_at(shared_browser, address)
