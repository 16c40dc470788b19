"""inpage.models(), load(), unload(): progress, replacing, errors, and no GPU memory left behind."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Route

from tests.app.conftest import ApiPage
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.browser

BUFFERS = """
from inpage_bridge import bridge
[engine.device.counters.buffers_alive,
 sum(1 for entry in bridge.objects.values() if entry.constructor.name == "GPUBuffer")]
"""
WARM = """
import asyncio
while engine.loaded.running:  # what a load leaves to the background
    await asyncio.sleep(0.01)
"""
ANSWER = """(await inpage.completions.create({
    prompt: "Hello", temperature: 0, max_tokens: 5, ignore_eos: true,
})).choices[0].token_ids"""


def test_ready_tells_of_the_machine(started: ApiPage) -> None:
    ready = started.run("return inpage.ready")
    assert {"adapter", "features", "limits", "versions", "phases"} <= ready.keys()


def test_what_the_site_offers(started: ApiPage) -> None:
    (model,) = started.run("return inpage.models()")
    assert model["name"] == NAME
    assert model["context"] == CONTEXT
    assert isinstance(model["stored"], bool)
    assert {"path", "size", "parameters", "quantisation", "gpu_bytes"} <= model.keys()


def test_a_load_tells_how_far_it_is(started: ApiPage) -> None:
    described, steps = started.run(
        "const steps = []; const onProgress = (step) => steps.push(step);"
        "return [await inpage.load(given, { onProgress }), steps]",
        NAME,
    )
    assert described["name"] == NAME
    assert [described["path"]] == started.run(
        "return (await inpage.models()).map((one) => one.path)"
    )
    assert described["context"] == CONTEXT
    assert described["has_chat_template"]
    assert described["has_goldens"]
    assert isinstance(described["from_cache"], bool)
    assert started.run("return inpage.loaded") == described
    assert {"upload"} <= {step["phase"] for step in steps} <= {"download", "upload"}
    fractions = [step["fraction"] for step in steps]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] == pytest.approx(1)
    assert all(0 <= step["done"] <= step["total"] and step["seconds"] >= 0 for step in steps)


def test_unload_gives_everything_back(gpu_api: ApiPage) -> None:
    api = gpu_api
    alive, in_bridge = api.python(BUFFERS)
    assert alive > 0
    assert in_bridge > 0
    api.run("await inpage.unload()")
    assert api.run("return inpage.loaded") is None
    assert api.python(BUFFERS) == [0, 0]
    assert api.python("[engine.model, model, graph]") == [None] * 3
    assert api.fails("return inpage.countTokens([])")["code"] == "no_model"
    api.run("await inpage.unload()")  # nothing to do, nothing wrong


def test_a_second_load_replaces_the_first(api: ApiPage) -> None:
    before = api.python(WARM + BUFFERS)
    api.run(f"await inpage.load('{NAME}')")
    assert api.python(WARM + BUFFERS) == before


def test_an_address_is_as_good_as_a_name(started: ApiPage, toy_site_url: str) -> None:
    for where in (f"models/{NAME}", f"{toy_site_url}models/{NAME}/"):
        assert started.run("return inpage.load(given)", where)["name"] == NAME


def test_the_last_of_two_loads_wins(started: ApiPage) -> None:
    outcomes = started.run(
        "const load = () => inpage.load(given).then(() => 'loaded', ({ code }) => code);"
        "return Promise.all([load(), load()])",
        NAME,
    )
    assert sorted(outcomes) == ["aborted", "loaded"]
    assert started.run("return inpage.loaded?.name") == NAME


@pytest.fixture
def endless(started: ApiPage) -> Iterator[ApiPage]:
    """Let uploads go on for ever, so that no load is over before it is ended."""
    started.python(
        """
import asyncio
from py_runtime.weights.uploads import UploadQueue
finish, UploadQueue.finish = UploadQueue.finish, lambda queue: asyncio.Event().wait()
"""
    )
    yield started
    started.python("UploadQueue.finish = finish")


def test_unload_ends_a_load(endless: ApiPage) -> None:
    code = endless.run(
        "const load = inpage.load(given).then(() => 'loaded', ({ code }) => code);"
        "await inpage.models(); await inpage.unload(); return load",
        NAME,
    )
    assert code == "aborted"
    assert endless.run("return inpage.loaded") is None
    assert endless.python(BUFFERS) == [0, 0]


@pytest.mark.parametrize("phase", [None, "upload"])
def test_a_signal_ends_a_load(endless: ApiPage, phase: str | None) -> None:
    error = endless.fails(
        f"""await inpage.unload();
        const stop = new AbortController();
        const onProgress = ({{ phase }}) => {{ if (phase === given) stop.abort(); }};
        if (given === null) stop.abort();
        return inpage.load('{NAME}', {{ onProgress, signal: stop.signal }})""",
        phase,
    )
    assert error["code"] == "aborted"
    assert endless.run("return inpage.loaded") is None
    assert endless.python(BUFFERS) == [0, 0]


def test_a_signal_ends_a_load_before_it_is_known_what_there_is(started: ApiPage) -> None:
    held: list[Route] = []
    started.page.route("**/models.json", lambda route: held.append(route))
    with started.page.expect_request("**/models.json"):
        started.run(
            """globalThis.stopping = new AbortController();
            const { signal } = stopping;
            globalThis.stopped = inpage.load(given, { signal }).catch(({ code }) => code)""",
            NAME,
        )
    assert started.run("stopping.abort(); return stopped") == "aborted"
    assert held, "the list came after all"
    started.page.unroute("**/models.json")


def test_an_answer_may_be_asked_for_at_once(started: ApiPage) -> None:
    """It comes before the warm-up is over, and nothing of that is in it or in the session."""
    at_once, again = started.run(f"await inpage.load('{NAME}'); return [{ANSWER}, {ANSWER}]")
    state = "[model.session.computed_tokens - len(model.session.tokens), model.session.tokens[:2]]"
    computed_twice, tokens = started.python(WARM + state)
    assert at_once == again
    assert len(at_once) == 5
    assert computed_twice >= 0
    assert tokens == started.python("model.tokenizer.encode('Hello')[:2]")


def test_an_answer_that_waits_for_the_warm_up_can_be_stopped(started: ApiPage) -> None:
    reason = started.run(
        f"""await inpage.load('{NAME}');
        const stop = new AbortController();
        const answer = inpage.completions.create({{ prompt: "Hello", signal: stop.signal }});
        stop.abort();
        return (await answer).choices[0].finish_reason"""
    )
    assert reason == "abort"
    assert len(started.run(f"return {ANSWER}")) == 5


def test_unload_ends_a_warm_up(started: ApiPage) -> None:
    started.run(f"await inpage.load('{NAME}'); await inpage.unload()")
    assert started.run("return inpage.loaded") is None
    assert started.python(WARM + BUFFERS) == [0, 0]


def test_a_device_lost_while_warming_up(started: ApiPage) -> None:
    answer = started.run(
        f"""await inpage.load('{NAME}');
        await inpage.python("engine.device.destroy()");
        return {ANSWER}"""
    )
    assert len(answer) == 5
    assert started.python(WARM + "model.graph.device is engine.device") is True


RACING = f"""
  const messages = [{{ role: "user", content: "Hello" }}];
  const ask = () => [
    inpage.verify(),
    inpage.countTokens(messages),
    inpage.completions.create({{ prompt: "Hello", max_tokens: 300, ignore_eos: true }}),
  ];
  const before = ask();
  if (given.lose) await inpage.python("engine.device.destroy()");
  const change = given.how === "load" ? inpage.load("{NAME}") : inpage.unload();
  const ends = await Promise.allSettled([...before, ...ask()]);
  await change;
  return ends.map(({{ reason }}) => reason?.code ?? null);
"""


@pytest.mark.parametrize("lose", [False, True], ids=["", "while the device is lost"])
@pytest.mark.parametrize("how", ["load", "unload"])
def test_calls_that_race_a_load_or_unload(api: ApiPage, how: str, lose: bool) -> None:
    codes = api.run(RACING, {"how": how, "lose": lose})
    assert set(codes) <= {None, "aborted", "no_model"}
    if how == "unload":
        assert api.python(WARM + BUFFERS) == [0, 0]
    assert len(api.run(f"if (!inpage.loaded) await inpage.load('{NAME}'); return {ANSWER}")) == 5


WRONG: list[tuple[Any, str, str]] = [
    ("Nobody", "invalid_request", NAME),  # says which there are
    ("", "invalid_request", "name"),
    (None, "invalid_request", "name"),
    (5, "invalid_request", "name"),
    ("https://example.com/models/Toy/", "invalid_request", "origin"),
    ("//example.com/models/Toy/", "invalid_request", "origin"),
    ("models/Nobody/", "network_error", "manifest.json"),
]


@pytest.mark.parametrize(("where", "code", "word"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_name_leaves_the_model_in_place(
    api: ApiPage, where: Any, code: str, word: str
) -> None:
    error = api.fails("return inpage.load(given)", where)
    assert error["code"] == code
    assert word in error["message"]
    if code == "invalid_request":
        assert error["param"] == "name_or_url"
        assert api.run("return inpage.loaded.name") == NAME
    assert api.run("return inpage.loaded?.name ?? null") == api.python(
        "engine.model and engine.model.manifest.name"
    )
