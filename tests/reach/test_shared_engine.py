"""An engine for several tabs, through the npm package, in a SharedWorker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.toy_model import NAME, TOKENS, Greedy
from tests.web.user import PAUSE, until

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

PAGE = """<!doctype html>
<title>A tab</title>
<script type="module">
  import { createEngine } from "./node_modules/inpage/dist/engine.js";
  Object.assign(globalThis, { createEngine });
</script>
"""
CREATE = """async () => {
  globalThis.engine = await createEngine({ shared: true, models: ["/models/NAME/"] });
  return engine.loaded?.name ?? null;
}""".replace("NAME", NAME)
ASK = """async ([prompt_token_ids, max_tokens]) => {
  const request = { prompt_token_ids, max_tokens, temperature: 0, ignore_eos: true };
  return (await engine.completions.create(request)).choices[0].token_ids;
}"""
BEGIN = """([prompt_token_ids, max_tokens]) => {
  const request = { prompt_token_ids, max_tokens, temperature: 0, ignore_eos: true };
  globalThis.answer = engine.completions.create(request);
}"""
MESSAGE = """async (call) => {
  try { await eval(`(async () => ${call})()`); } catch (error) { return error.message; }
}"""
ENGINES = """async () => (await navigator.locks.query()).held
  .filter(({ name }) => name.startsWith("inpage http")).length"""


@pytest.fixture
def context(shared_browser: Browser, project: Path, toy_model: Path) -> Iterator[BrowserContext]:
    (project / "tab.html").write_text(PAGE)
    models = project / "models"
    models.unlink(missing_ok=True)
    models.symlink_to(toy_model.parent)
    context = shared_browser.new_context()
    yield context
    context.close()


def tab(context: BrowserContext, project_url: str) -> Page:
    page = context.new_page()
    page.goto(f"{project_url}tab.html")
    page.wait_for_function("() => globalThis.createEngine")
    return page


def python(page: Page, code: str) -> Any:
    return page.evaluate("(code) => engine.python(code)", code)


def test_tabs_share_an_engine(context: BrowserContext, project_url: str, greedy: Greedy) -> None:
    first, second = tab(context, project_url), tab(context, project_url)
    asked = [greedy.prompt, TOKENS]
    assert first.evaluate(CREATE) is None
    assert first.evaluate("async (name) => (await engine.load(name)).name", NAME) == NAME
    python(first, "said = 'by the first'")
    assert second.evaluate(CREATE) == NAME, "it is loaded there already"
    assert python(second, "said") == "by the first"
    assert second.evaluate(ENGINES) == 1

    # Both at once: each gets its own answer.
    first.evaluate(BEGIN, asked)
    assert second.evaluate(ASK, asked) == greedy.tokens
    answer = "async () => (await answer).choices[0].token_ids"
    assert first.evaluate(answer) == greedy.tokens
    no_files = second.evaluate(MESSAGE, "engine.load([new File(['x'], 'x.gguf')])")
    assert "takes no files" in no_files
    elsewhere = "createEngine({ shared: true, assetsURL: 'http://127.0.0.1:9/' })"
    assert "must lie on their own origin" in second.evaluate(MESSAGE, elsewhere)

    # A tab that is closed takes its question along, and the engine stays.
    running = "len([1 for cancel in engine.loaded.running if not cancel.cancelled])"
    python(second, PAUSE)
    first.evaluate(BEGIN, [greedy.prompt, 400])
    until(second, lambda: python(second, running), "the first tab's question is being answered")
    first.close()
    until(second, lambda: not python(second, running), "the first tab's question is cancelled")
    python(second, "del model._generate")
    assert second.evaluate(ASK, asked) == greedy.tokens

    # The last one to leave ends it; whoever comes then has another.
    second.evaluate("engine.dispose()")
    until(second, lambda: not second.evaluate(ENGINES), "the engine has ended")
    third = tab(context, project_url)
    assert third.evaluate(CREATE) is None
