"""`import inpage` in a Pyodide that has nothing else of ours."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.reach.bare_pyodide import bare_page, write_site
from tests.reach.conftest import Packages
from tests.reach.readme import LINES, go_on
from tests.toy_model import NAME, TOKENS, Greedy

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

CODE = """
import contextlib, io, json
import os

import inpage
from py_runtime.base import notices
from pyodide.code import run_js

os.environ["INPAGE_DEVICE"] = "gpu"  # a software one, which no model would be given
opened = run_js('''(() => {{
  const opened = [], {{ requestDevice }} = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = function (...given) {{
    opened.push(1);
    return requestDevice.apply(this, given);
  }};
  return opened;
}})()''')
told = []
notices.listen(told.append)
{load}
with contextlib.redirect_stdout(io.StringIO()) as said:
    {go_on}
second = await inpage.load("{second}")
tokens = [[token async for token in each.greedy({prompt}, {count})] for each in (model, second)]
model.unload()
tokens.append([token async for token in second.greedy({prompt}, {count})])
second.unload()

from py_runtime.bridge.opfs import list_stored
kept = [name for name, size, _ in await list_stored() if size]
listed = [entry.where for entry in await inpage.models() if entry.stored]
kinds = [notice["kind"] for notice in told]
json.dumps([tokens, said.getvalue(), kinds, len(kept), listed, len(opened)])
"""


@pytest.fixture(scope="module")
def folder(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    write_site(folder, packages.wheel)
    return folder


@pytest.mark.parametrize("where", ["worker", "main"])
def test_a_model_answers(
    shared_browser: Browser, folder: Path, models_url: str, greedy: Greedy, where: str
) -> None:
    load = LINES["Python in the browser"].replace("https://models.example.org/", models_url)
    code = CODE.format(
        load=load,
        go_on=go_on(),
        prompt=greedy.prompt,
        count=TOKENS,
        second=f"{models_url}{NAME}/",
    )
    with bare_page(shared_browser, folder, where) as page:
        tokens, said, told, kept, listed, opened = json.loads(page.python(code))
    assert tokens == [greedy.tokens] * 3
    assert opened == 1, "both models are on one device"
    assert said
    # Only a worker can write to this browser's files; elsewhere each load goes on without.
    assert told == ([] if where == "worker" else ["storage"] * 2)
    assert (kept > 0) == (where == "worker")
    assert listed == ([f"{models_url}{NAME}/"] if where == "worker" else [])
