"""python -m tools.screenshot FOLDER: the page in light, dark and phone width, as PNG files."""

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools import browser
from tools.files import ROOT

LOOKS = {
    "screenshot": {"viewport": {"width": 900, "height": 700}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 900, "height": 700}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
}
START_MILLISECONDS = 120_000


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "serve.py", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().split()[-1]
        try:
            with sync_playwright() as playwright:
                flags = browser.launch_flags()
                path = str(browser.find())
                chromium = playwright.chromium.launch(executable_path=path, args=flags)
                for name in LOOKS:
                    shoot(chromium, url, name, folder / f"{name}.png")
        finally:
            server.terminate()


def shoot(chromium: Browser, url: str, name: str, path: Path) -> None:
    page = chromium.new_page(**LOOKS[name])  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("button", name="Run").click(timeout=START_MILLISECONDS)
    page.get_by_text("1 rows").wait_for(timeout=START_MILLISECONDS)
    page.screenshot(path=path, full_page=True)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
