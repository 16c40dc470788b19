"""A page with Pyodide and nothing of ours: micropip installs the wheel as any other.

It does so in a worker and on the page's main thread.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.conftest import serving_folder
from tests.reach.pyodide_wheels import write_pyodide

# Defines run(code), which gives what the code's last expression says, as JSON.
START = """
import { loadPyodide } from "./pyodide/pyodide.mjs";
const python = await loadPyodide();
await python.loadPackage("micropip");
await python.pyimport("micropip").install(new URL("./WHEEL", import.meta.url).href);
const run = async (code) => {
  try { return { value: await python.runPythonAsync(code) }; }
  catch (error) { return { error: error.message }; }
};
"""
WORKER = "onmessage = async ({ data }) => postMessage(await run(data));\npostMessage('ready');\n"
IN_WORKER = """
const worker = new Worker("./worker.js", { type: "module" });
const answer = () => new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
});
await answer();
globalThis.run = (code) => { worker.postMessage(code); return answer(); };
"""
PAGE = '<!doctype html><title>Bare Pyodide</title><script type="module" src="NAME"></script>'


class BarePage:
    def __init__(self, page: Page) -> None:
        self._page = page

    def python(self, code: str) -> Any:
        outcome = self._page.evaluate("(code) => globalThis.run(code)", code)
        assert "error" not in outcome, outcome["error"]
        return outcome["value"]


def write_site(folder: Path, wheel: Path) -> None:
    """Two pages: worker.html has Python in a worker, main.html in its own thread."""
    write_pyodide(folder / "pyodide")
    shutil.copyfile(wheel, folder / wheel.name)
    start = START.replace("WHEEL", wheel.name)
    (folder / "worker.js").write_text(start + WORKER)
    (folder / "in_worker.js").write_text(IN_WORKER)
    (folder / "main.js").write_text(f"{start}globalThis.run = run;\n")
    (folder / "worker.html").write_text(PAGE.replace("NAME", "in_worker.js"))
    (folder / "main.html").write_text(PAGE.replace("NAME", "main.js"))


@contextmanager
def bare_page(browser: Browser, folder: Path, where: str) -> Iterator[BarePage]:
    """Open the page that runs Python in the "worker" or on the "main" thread, as `where` says."""
    with serving_folder(folder) as address:
        page = browser.new_page()
        page.goto(f"{address}{where}.html")
        page.wait_for_function("() => globalThis.run")
        yield BarePage(page)
        page.close()
