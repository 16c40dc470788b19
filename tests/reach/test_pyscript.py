"""The page of examples/ with PyScript, which installs our wheel with micropip."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import serving_folder
from tests.reach.conftest import Packages
from tests.reach.pyodide_wheels import FOLDER, write_pyodide
from tests.reach.readme import DEFAULT, briefly
from tests.runners import PATIENCE
from tests.toy_model import NAME, TOKENS, Greedy
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

EXAMPLE = ROOT / "examples" / "chat_in_pyscript.html"
PYSCRIPT = FOLDER / "node_modules" / "@pyscript" / "core"
MODEL = f"https://models.example.org/{DEFAULT}/"
CDN = "https://cdn.jsdelivr.net/npm/@pyscript/core@0.7.31/dist/"
CONFIG = "config='{"
END = "    </script>\n  </body>"
# The same model, asked for tokens that torch knows.
MORE = """
      tokens = [token async for token in model.greedy({prompt}, {count})]
      document.body.append(f"tokens: {{tokens}}")
"""


def own_page(given: dict[str, str]) -> str:
    """Return the example with addresses of this machine."""
    page = briefly(EXAMPLE.read_text())
    for text, instead in given.items():
        assert page.count(text) == 1, text
        page = page.replace(text, instead)
    return page


def test_the_page(
    shared_browser: Browser, packages: Packages, tmp_path: Path, models_url: str, greedy: Greedy
) -> None:
    write_pyodide(tmp_path / "pyodide")
    shutil.copytree(PYSCRIPT / "dist", tmp_path / "pyscript")
    shutil.copyfile(packages.wheel, tmp_path / packages.wheel.name)
    more = MORE.format(prompt=greedy.prompt, count=TOKENS)
    given = {
        CDN: "./pyscript/",
        CONFIG: f'{CONFIG}"interpreter": "./pyodide/pyodide.mjs", ',
        MODEL: f"{models_url}{NAME}/",
        END: more + END,
    }
    (tmp_path / "index.html").write_text(own_page(given))
    with serving_folder(tmp_path) as address:
        page = shared_browser.new_page()
        page.goto(address)
        expect(page.locator("#answer")).not_to_be_empty(timeout=2 * PATIENCE)
        expect(page.locator("body")).to_contain_text(f"tokens: {greedy.tokens}")
        page.close()
