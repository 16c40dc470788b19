"""The npm package in somebody else's page: installed into an empty project, served plainly."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.reach.conftest import serving_openly
from tests.reach.readme import LINES
from tests.toy_model import NAME, TOKENS, Greedy
from tests.web.user import until
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.thorough]

PAGE = f"""<!doctype html>
<title>Somebody else's page</title>
<script type="importmap">
  {{ "imports": {{ "inpage": "./node_modules/inpage/dist/engine.js" }} }}
</script>
<script type="module">
  {LINES["JavaScript"]}
  Object.assign(globalThis, {{ createEngine, engines: [engine] }});
</script>
"""
# What a page would do; `given` is {prompt, max_tokens, …}.
CREATE = """async (options) => {
  const progress = [];
  const engine = await createEngine({ ...options, onProgress: (now) => progress.push(now) });
  engines.push(engine);
  return progress;
}"""
LOAD = """async ([at, where]) => (await engines[at].load(where)).name"""
ASK = """async ([ats, prompt_token_ids, max_tokens]) => {
  const request = { prompt_token_ids, max_tokens, temperature: 0, ignore_eos: true };
  const answers = await Promise.all(ats.map((at) => engines[at].completions.create(request)));
  return answers.map(({ choices }) => choices[0].token_ids);
}"""
CODE = """async ([at, call, argument]) => {
  try { await engines[at][call](argument); } catch (error) { return [error.code, error.message]; }
}"""
LOCKS = """async () => {
  const { held, pending } = await navigator.locks.query();
  return [...held, ...pending].filter(({ name }) => name.startsWith("inpage")).length;
}"""


@pytest.fixture(scope="module")
def assets_url(project: Path) -> Iterator[str]:
    """Serve the package's files from another origin."""
    with serving_openly(project / "node_modules" / "inpage" / "dist") as address:
        yield address


@pytest.fixture(scope="module")
def page(
    shared_browser: Browser, project: Path, project_url: str, toy_model: Path
) -> Iterator[Page]:
    """Start an engine as the README does: its files and its model lie on the page's origin."""
    (project / "index.html").write_text(PAGE)
    models = project / "models"
    models.unlink(missing_ok=True)  # of a first try
    models.symlink_to(toy_model.parent)
    page = shared_browser.new_page()
    page.goto(project_url)
    page.wait_for_function("() => globalThis.engines")
    yield page
    page.close()


def test_engines_of_a_page(
    page: Page, project_url: str, assets_url: str, models_url: str, greedy: Greedy
) -> None:
    model = f"{models_url}{NAME}/"
    # Beside the page's own engine one from another origin, with a model of yet another.
    options = {"assetsURL": assets_url, "models": [model], "storage": False}
    progress = page.evaluate(CREATE, options)
    assert {step["phase"] for step in progress} == {"start"}
    assert progress[-1]["fraction"] == 1
    assert page.evaluate("crossOriginIsolated") is False
    assert [row["name"] for row in page.evaluate("engines[1].models()")] == [NAME]
    assert page.evaluate(LOAD, [1, NAME]) == NAME
    assert page.evaluate(ASK, [[0, 1], greedy.prompt, TOKENS]) == [greedy.tokens] * 2

    stored = page.evaluate("engines[0].stored()")
    assert [row["url"] for row in stored] == [f"{project_url}models/{NAME}/"]
    assert page.evaluate("engines[1].stored()") == []

    for at, where in ((0, model), (1, f"{models_url}Other/")):
        code, message = page.evaluate(CODE, [at, "load", where])
        assert code == "invalid_request"
        assert "createEngine({ models:" in message

    # Its end is its own: the other one answers.
    assert (len(page.workers), page.evaluate(LOCKS)) == (2, 4)
    page.evaluate("engines[0].dispose()")
    assert page.evaluate(CODE, [0, "countTokens", []])[0] == "disposed"
    assert page.evaluate(ASK, [[1], greedy.prompt, TOKENS]) == [greedy.tokens]
    page.evaluate("engines[1].dispose()")
    assert page.evaluate(LOCKS) == 0
    # Playwright hears of it a little later.
    until(page, lambda: not page.workers, "their workers have ended")


def test_assets_that_are_not_there(page: Page, models_url: str) -> None:
    script = """async (assetsURL) => {
      try { await createEngine({ assetsURL }); } catch (error) { return error.message; }
    }"""
    assert f"{models_url}worker.js" in page.evaluate(script, models_url)


CONSUMER = """
import { createEngine, type ChatCompletionChunk, type Engine, type InpageError } from "inpage";

const engine: Engine = await createEngine({
  assetsURL: new URL("/inpage/", location.href), models: ["hf:owner/name"], storage: false,
  onProgress: ({ phase, fraction }) => { document.title = `${phase} ${fraction.toFixed(2)}`; },
});
await engine.load("hf:owner/name", { signal: AbortSignal.timeout(1000) });
const { name } = await engine.load("hf:owner/other", { keep: true });
await engine.embeddings.create({ model: name, input: "Hello" });
await engine.unload(name);
const messages = [{ role: "user" as const, content: "Hello" }];
for await (const chunk of engine.chat.completions.create({ messages, stream: true })) {
  const typed: ChatCompletionChunk = chunk;
  document.body.append(typed.choices[0]?.delta.content ?? "");
}
engine.dispose().catch(({ code }: InpageError) => code === "disposed");
await createEngine();
// @ts-expect-error: every option is known by name
await createEngine({ asset: 1 });
// @ts-expect-error: only our own page has one that is there already
await inpage.ready;
"""


def test_a_strict_typescript_project(project: Path) -> None:
    (project / "consumer.ts").write_text(CONSUMER)
    options = {
        "--target": "esnext",
        "--lib": "esnext,dom",
        "--module": "nodenext",
        "--moduleResolution": "nodenext",
    }
    flags = [part for pair in options.items() for part in pair]
    tsc = [str(ROOT / "node_modules/.bin/tsc"), "--noEmit", "--strict", *flags, "consumer.ts"]
    found = subprocess.run(tsc, cwd=project, capture_output=True, text=True)
    assert found.stdout == ""
