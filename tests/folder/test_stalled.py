"""A server that stops sending, as web/bridge/files.js sees it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from py_runtime.base.patience import STALLED_SECONDS
from tools.files import ROOT

READ = """async (site) => {
  const { createFiles } = await import(`${site}bridge/files.js`);
  const memory = new ArrayBuffer(64);
  const sent = new ReadableStream({ start(stream) { stream.enqueue(new Uint8Array(4)); } });
  globalThis.fetch = async () => new Response(sent);
  const { calls } = createFiles({ buffer: () => memory }, 0.1);
  const handle = calls.openUrl("https://slow.example/x", "{}");
  return calls.readBlock(handle, 0, 64).then(() => "read", ({ message }) => message);
}"""


@pytest.mark.browser
def test_a_download_that_stands_still_ends(browser: Browser, site_url: str) -> None:
    page = browser.new_page()
    page.goto(f"{site_url}style.css")
    message = page.evaluate(READ, site_url)
    assert message == "https://slow.example/x did not arrive: nothing has come for 0.1 seconds"
    page.close()


def test_the_page_waits_as_long_as_python_does() -> None:
    script = Path(ROOT / "web" / "bridge" / "files.js").read_text()
    found = re.search(r"const STALLED_SECONDS = (\d+);", script)
    assert found is not None
    assert int(found[1]) == STALLED_SECONDS
