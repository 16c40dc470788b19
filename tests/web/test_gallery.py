"""The notebook's experiments: each runs to its end, and shows something."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.user import User
from tools.files import ROOT

pytestmark = pytest.mark.browser

GALLERY = ROOT / "web" / "gallery"
LISTED = re.compile(r'\{ name: "(\w+)", title')
NAMES = LISTED.findall((ROOT / "web" / "ui" / "notebook" / "files.js").read_text())
MAX_LINES = 40


def test_every_file_is_listed_and_short() -> None:
    files = {path.stem: path for path in GALLERY.glob("*.py")}
    assert sorted(files) == sorted(NAMES)
    assert all(len(path.read_text().splitlines()) <= MAX_LINES for path in files.values())
    assert all(path.read_text().startswith("# %% [markdown]\n# # ") for path in files.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs(user: User, name: str) -> None:
    page = user.page
    user.new_chat()
    page.evaluate(f"location.hash = '#panel=notebook&experiment={name}'")
    cells = page.get_by_role("region", name="Code cell")
    code = (GALLERY / f"{name}.py").read_text().count("# %%\n")
    expect(cells).to_have_count(code)
    expect(cells.last.locator(".run:not([data-count=''])")).to_be_visible()
    expect(page.locator(".cell[data-running]")).to_have_count(0)
    assert page.locator(".outputs .fault").all_inner_texts() == []
    expect(cells.locator(".outputs > *").last).to_be_visible()
    assert user.complaints == []
    page.evaluate("location.hash = ''")
