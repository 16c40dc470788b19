"""The memory that a page takes before it does anything: python -m bench.page_floor.

Opens an empty page in this machine's Chromium, then starts Pyodide in a worker of it, then imports
numpy there. What inpage's page takes beside weights and caches stands on that.
"""

import json
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench.browser import FLAGS
from bench.processes import renderer_bytes
from bench.report import megabytes
from bench.server import serving
from tools import browser

EMPTY, WORKER = "floor.html", "floor.js"
SETTLED_SECONDS = 3
STEPS = {"Pyodide in a worker": "start", "numpy in it": "numpy"}
CODE = """
import { loadPyodide } from "/PYODIDE/pyodide.mjs";
let python;
onmessage = async ({ data }) => {
  if (data === "start") python = await loadPyodide({ indexURL: `${location.origin}/PYODIDE/` });
  else await python.loadPackage(data).then(() => python.runPython(`import ${data}`));
  postMessage(data);
};
"""
ASK = """step => new Promise((resolve, reject) => {
  globalThis.worker ??= new Worker("/floor.js", { type: "module" });
  Object.assign(worker, { onmessage: resolve, onerror: ({ message }) => reject(message) });
  worker.postMessage(step);
})"""


def measure(page: Page, profile: Path, address: str) -> None:
    """Print the page's memory after each step."""

    def say(what: str) -> None:
        time.sleep(SETTLED_SECONDS)
        print(f"{what}: {megabytes(renderer_bytes(profile))}", flush=True)

    page.goto(address + EMPTY)
    say("an empty page")
    for what, step in STEPS.items():
        page.evaluate(ASK, step)
        say(what)


def main() -> None:
    """Open the page in a profile of its own."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        serving(with_peers=False) as address,
        sync_playwright() as playwright,
    ):
        with urllib.request.urlopen(f"{address}site.json") as site:
            folder = json.load(site)["pyodide"].strip("/")
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=browser.find(),
            headless=True,
            args=[*browser.launch_flags(), *FLAGS],
        )
        html, script = "text/html", "text/javascript"
        code = CODE.replace("PYODIDE", folder)
        context.route(f"**/{EMPTY}", lambda route: route.fulfill(body="", content_type=html))
        context.route(f"**/{WORKER}", lambda route: route.fulfill(body=code, content_type=script))
        measure(context.pages[0], Path(profile), address)
        context.close()


if __name__ == "__main__":
    main()
