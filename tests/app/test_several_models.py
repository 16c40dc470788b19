"""Several models in one engine: on one device, each asked by its name, each unloaded alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.app.conftest import ApiPage
from tests.conftest import serving
from tests.toy_model import NAME, SECOND, TOKENS, greedy_of

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

COUNT_DEVICES = """
from inpage_bridge import bridge
from pyodide.ffi import create_proxy

opened, open_device = [], bridge.openDevice

def counted(features):
    opened.append(features)
    return open_device(features)

bridge.openDevice = create_proxy(counted)
"""
OPENED = "len(opened)"
BYTES = "engine.device.counters.buffer_bytes_alive"
# The models are asked at once.
ASK = """return Promise.all(given.map((request) => inpage.completions.create(request)
  .then(({ model, choices }) => [model, choices[0].token_ids])))"""
KEEP = "return (await inpage.load(given, { keep: true })).name"


@pytest.fixture(scope="module")
def page(browser: Browser, two_models: Path) -> Iterator[ApiPage]:
    with serving("--models", str(two_models), device="gpu") as address:  # which it counts
        page = browser.new_page()
        page.goto(address)
        api = ApiPage(page)
        api.run("await inpage.ready")
        api.python(COUNT_DEVICES)
        yield api
        page.close()


@pytest.fixture
def both(page: ApiPage) -> ApiPage:
    page.run("return inpage.load(given)", NAME)
    assert page.run(KEEP, SECOND) == SECOND
    return page


@pytest.fixture(scope="module")
def right(two_models: Path) -> list[list[Any]]:
    return [[name, greedy_of(two_models / name).tokens] for name in (NAME, SECOND)]


@pytest.fixture(scope="module")
def requests(two_models: Path) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "prompt_token_ids": greedy_of(two_models / name).prompt,
            "max_tokens": TOKENS,
            "temperature": 0,
            "ignore_eos": True,
        }
        for name in (NAME, SECOND)
    ]


def test_each_is_asked_by_its_name(
    both: ApiPage, requests: list[dict[str, Any]], right: list[list[Any]]
) -> None:
    opened = both.python(OPENED)
    assert both.run("return inpage.loaded.name") == SECOND
    assert both.run(ASK, requests) == right
    unnamed = {**requests[1], "model": None}
    assert both.run(ASK, [unnamed]) == [right[1]]
    vectors = "return (await inpage.embeddings.create({ model: given, input: 'fox' })).model"
    assert both.run(vectors, NAME) == NAME
    for call in ("completions.create({ model: 'gpt-4', prompt: 'x' })", "unload('gpt-4')"):
        error = both.fails(f"return inpage.{call}")
        assert error["code"] == "invalid_request"
        assert error["param"] == "model"
        assert f"{NAME}, {SECOND}" in error["message"]
    assert both.fails("return inpage.load(given, { keep: 'it' })", NAME)["param"] == "keep"

    # One comes again while the other writes: it is replaced, and the other does not stop.
    held = both.python(f"await engine.loaded.last.warming\n{BYTES}")
    long = {**requests[1], "max_tokens": 64, "stream": True}
    tokens = both.run(
        f"""const tokens = [];
        let loading;
        for await (const {{ choices: [choice] }} of inpage.completions.create(given)) {{
          loading ??= inpage.load('{NAME}', {{ keep: true }});
          tokens.push(...choice.token_ids);
        }}
        await loading;
        return tokens""",
        long,
    )
    assert tokens[:TOKENS] == right[1][1]
    assert len(tokens) == 64
    assert both.python("[each.name for each in engine.loaded]") == [SECOND, NAME]
    assert both.python(f"await engine.loaded.last.warming\n{BYTES}") == pytest.approx(held, rel=0.2)
    assert both.python(OPENED) == opened


def test_one_goes_while_the_other_answers(
    both: ApiPage, requests: list[dict[str, Any]], right: list[list[Any]]
) -> None:
    held = both.python(BYTES)
    outcome = both.run(
        f"""const stream = inpage.completions.create({{ ...given, max_tokens: 64, stream: true }});
        const tokens = [];
        let unloading;
        for await (const {{ choices: [choice] }} of stream) {{
          unloading ??= inpage.unload('{SECOND}');
          tokens.push(...choice.token_ids);
        }}
        await unloading;
        return [tokens.length, inpage.loaded.name]""",
        requests[0],
    )
    assert outcome == [64, NAME]
    assert 0 < both.python(BYTES) < held
    assert both.run(ASK, requests[:1]) == right[:1]
    error = both.fails(f"return inpage.completions.create({{ model: '{SECOND}', prompt: 'x' }})")
    assert error["message"] == f"the loaded model is {NAME}, not '{SECOND}'"
    both.run("await inpage.unload()")
    assert both.run("return inpage.loaded") is None
    assert both.python(BYTES) == 0


def test_a_lost_device_is_replaced_once(
    both: ApiPage, requests: list[dict[str, Any]], right: list[list[Any]]
) -> None:
    opened = both.python(OPENED)
    both.python("engine.device.destroy()")
    assert both.run(ASK, requests) == right
    assert both.python(OPENED) == opened + 1
    devices = "[each.model.graph.device is engine.device for each in engine.loaded]"
    assert both.python(devices) == [True, True]
    assert both.run(ASK, requests) == right


def test_a_load_without_keep_replaces_both(both: ApiPage, right: list[list[Any]]) -> None:
    both.run("return inpage.load(given)", NAME)
    assert both.python("[each.name for each in engine.loaded]") == [NAME]


def test_a_restart_brings_both_back(
    both: ApiPage, requests: list[dict[str, Any]], right: list[list[Any]]
) -> None:
    both.run(KEEP, NAME)  # it comes again, and is the last now
    assert both.run("return (await inpage.restart()).name") == NAME
    assert both.python("[each.name for each in engine.loaded]") == [SECOND, NAME]
    assert both.run("return inpage.loaded.name") == NAME
    assert both.run(ASK, requests) == right
    both.run("return inpage.unload(given)", NAME)
    both.run("await inpage.restart()")
    assert both.python("[each.name for each in engine.loaded]") == [SECOND]
