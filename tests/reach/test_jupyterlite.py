"""`%pip install inpage` in JupyterLite: the notebook of examples/, run cell by cell."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import serving_folder
from tests.reach.conftest import Packages
from tests.reach.jupyterlite import NOTEBOOK, write_jupyterlite
from tests.reach.readme import DEFAULT, briefly
from tests.toy_model import NAME, TOKENS, Greedy
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

EXAMPLE = ROOT / "examples" / "chat_in_a_notebook.ipynb"
# What the cells have shown, change by change: where the bar was, and the texts of the answer.
WATCH = """() => {
  globalThis.seen = { bar: [], texts: [] };
  new MutationObserver(() => {
    const cells = [...document.querySelectorAll(".jp-CodeCell")];
    const [, loaded, answer] = cells.map((cell) => cell.querySelector(".jp-OutputArea"));
    const bar = loaded?.querySelector("progress");
    if (bar && seen.bar.at(-1) !== bar.value) seen.bar.push(bar.value);
    const text = answer?.textContent;
    if (text && seen.texts.at(-1) !== text) seen.texts.push(text);
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def test_the_notebook(
    shared_browser: Browser, packages: Packages, tmp_path: Path, models_url: str, greedy: Greedy
) -> None:
    text = EXAMPLE.read_text().replace("https://models.example.org/", models_url)
    notebook = json.loads(briefly(text.replace(DEFAULT, NAME)))
    tokens = f"[token async for token in model.greedy({greedy.prompt}, {TOKENS})]"
    notebook["cells"].append({**notebook["cells"][0], "id": "tokens", "source": [tokens]})
    site = write_jupyterlite(tmp_path, packages.wheel, notebook)

    with serving_folder(site) as address:
        page = shared_browser.new_page()
        page.goto(f"{address}notebooks/index.html?path={NOTEBOOK}")
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        expect(cells).to_have_count(4)
        page.evaluate(WATCH)
        cells.first.locator(".cm-content").click()
        for _ in range(4):
            page.keyboard.press("Shift+Enter")
        expect(cells.first.locator(".jp-InputPrompt")).to_have_text("[1]:")  # it is installed
        loaded = cells.nth(1).locator(".jp-OutputArea")
        expect(loaded.get_by_text("is loaded")).to_be_visible()
        expect(cells.nth(3).locator(".jp-OutputArea-output")).to_have_text(str(greedy.tokens))
        expect(loaded.locator("strong")).to_have_text([NAME, NAME])  # the bar's, and the model's
        expect(loaded.get_by_text("context of 512 tokens")).to_be_visible()
        seen = page.evaluate("seen")
        page.close()
    assert len(seen["bar"]) > 2
    assert seen["bar"] == sorted(seen["bar"])
    assert seen["bar"][-1] == 1
    assert len(seen["texts"]) > 1
    assert seen["texts"][-1].startswith(seen["texts"][0])
