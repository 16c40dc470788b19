"""Pictures of a conversation with the default model: python -m tools.screenshot FOLDER.

The files are screenshot.png, and the same in the dark and on a phone.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from tools import browser
from tools.files import ROOT

DESKTOP: ViewportSize = {"width": 1200, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
WAIT_MILLISECONDS = 300_000  # on a software GPU
SETTINGS = {"temperature": "0", "max_tokens": "160"}
QUESTIONS = (
    "Why is the sky blue? Answer in one sentence.",
    "Write a Python function that adds two numbers.",
)


def main(folder: Path) -> None:
    """Light, dark, and as wide as a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    with visiting(DESKTOP) as page:
        converse(page)
        shoot(page, folder)


@contextmanager
def visiting(size: ViewportSize) -> Iterator[Page]:
    """Open the page in a browser of its own, from a server of its own."""
    command = [sys.executable, "serve.py", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().split()[-1]
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=str(browser.find()), args=browser.launch_flags()
                )
                page = chromium.new_page(viewport=size, color_scheme="light")
                page.set_default_timeout(WAIT_MILLISECONDS)
                page.goto(url)
                yield page
        finally:
            server.terminate()


def converse(page: Page) -> None:
    """Load the model and wait for each answer."""
    page.get_by_role("button", name="Start chatting").click()
    expect(page.locator("body")).to_have_attribute("data-model", "ready", timeout=WAIT_MILLISECONDS)
    page.locator("header [data-opens=settings]").click()
    for name, value in SETTINGS.items():
        page.locator(f"#settings [name={name}]").fill(value)
    page.get_by_role("button", name="Done").click()
    for question in QUESTIONS:
        page.get_by_label("Message", exact=True).fill(question)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=WAIT_MILLISECONDS)


def shoot(page: Page, folder: Path) -> None:
    """Take the same conversation three times."""
    page.screenshot(path=folder / "screenshot.png")
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=folder / "dark.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    page.screenshot(path=folder / "phone.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
