"""The page in Debian's Firefox: what it stands on there, from the first start to no network."""

import base64
import json
from pathlib import Path

import pytest

from py_runtime.gpu.kernel_target import MEMORY_KERNELS
from tests.app.test_device_loss import ANSWER, DESTROY_AT, ONE_BY_ONE, REQUEST, STREAM
from tests.dynamic_shape.scenarios import SCENARIOS, Scenario
from tests.firefox.conftest import Site
from tests.firefox.marionette import Firefox
from tests.golden import check
from tests.gpu.compiled_in_browsers import BROKEN, COMPILE, batches
from tests.toy_model import NAME, TOKENS, greedy_of
from tests.web.test_attaching import active, endless
from tests.web.test_hostile_texts import HOSTILE
from tests.web.user import PAUSE, chat_of

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.thorough]

ENTER = "\ue007"  # as WebDriver spells the key
ANSWERS = "[...document.querySelectorAll('article[aria-label=Answer]')]"
NOTES = f"{ANSWERS}.map(answer => answer.querySelector('.note').textContent)"
# Whatever the toy says: its answers are long enough for a Stop, and no longer.
TALK = """const {completions} = inpage.chat;
const create = completions.create;
completions.create = request => create({...request, ignore_eos: true, max_tokens: 60});"""

# A file for one of the page's fields.
GIVE = """const [field, name, base64] = given;
const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
const files = new DataTransfer();
files.items.add(new File([bytes], name));
const input = document.querySelector(field);
input.files = files.files;
input.dispatchEvent(new Event("change", {bubbles: true}));"""
# A module that a script of the driver imports is another than the page's, and so are its limits.
HURRY = """const own = window.patient = window.setTimeout;
window.setTimeout = (then, delay, ...given) =>
    own.call(window, then, delay === 60_000 ? 500 : delay, ...given);"""
ATTACHED = "document.querySelector('#attached').innerText"

# Few: each takes seconds to compile there.
WIDE = [each for each in SCENARIOS if each.name in ("C rms_norm reused", "I linear_q4gsw")]
# As other people's pages do: the tabs of a site have one engine, in a SharedWorker.
SHARE = f"""const {{createEngine}} = await import(new URL("engine.js", document.baseURI).href);
window.engine = await createEngine({{shared: true, models: ["/models/{NAME}/"]}});
return engine.loaded?.name ?? null;"""
ASK = """const request = {prompt_token_ids: given, temperature: 0, ignore_eos: true};
const {choices: [choice]} = await engine.completions.create({...request, max_tokens: TOKENS});
return choice.token_ids;""".replace("TOKENS", str(TOKENS))


def test_the_page_starts(started: Site) -> None:
    report = started.firefox.run("return inpage.ready")
    assert [phase["name"] for phase in report["phases"]] == ["adapter", "Python", "runtime", "GPU"]
    assert report["isRestored"] is True
    assert report["adapter"]["is_fallback"] is True
    assert started.firefox.run("return crossOriginIsolated") is True
    assert started.python("float(np.arange(4).sum())") == 6


def test_its_compiler_takes_every_kernel(started: Site) -> None:
    """Each is joined with each file that plugs into it; subgroups and halves are not there.

    Kernels of graphics cards are among them, which no software adapter gets.
    """
    for kernels in batches():
        assert started.firefox.run(COMPILE, kernels) == []
    assert started.firefox.run(COMPILE, BROKEN) != []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_ops_equal_torch(started: Site, scenario: Scenario) -> None:
    for case in scenario.cases():
        check(case, started)


@pytest.mark.timeout(900)  # its software driver compiles one of these for minutes
@pytest.mark.parametrize("scenario", WIDE, ids=lambda scenario: scenario.name)
def test_wide_kernels_without_subgroups_equal_torch(started: Site, scenario: Scenario) -> None:
    """Graphics cards get these in Firefox: their lanes meet in workgroup memory."""
    for case in scenario.cases():
        check(case, started, MEMORY_KERNELS)


def test_the_model_computes_as_torch_does(site: Site) -> None:
    report = site.firefox.run("return inpage.verify()")
    assert report["ok"] is True
    assert [text["identical"] for text in report["texts"]] == [True]


def test_a_question_is_answered_and_stop_ends_an_answer(site: Site) -> None:
    firefox = site.firefox
    firefox.run(TALK)
    firefox.type("#draft", f"Am I heard?{ENTER}")
    firefox.until(f"{NOTES}[0]?.includes('60 tokens')")
    site.python(PAUSE)
    firefox.type("#draft", f"Go on and on{ENTER}")
    firefox.until("document.querySelector('#stop').checkVisibility()")
    firefox.click("#stop")
    firefox.until(f"{NOTES}[1]?.includes('Stopped')")
    site.python("del model._generate")
    questions = firefox.run("return document.querySelector('#messages').innerText")
    assert "Am I heard?" in questions
    assert "Go on and on" in questions


def give(site: Site, field: str, name: str, content: bytes) -> None:
    site.firefox.run(GIVE, [field, name, base64.b64encode(content).decode()])


def test_hostile_texts_hold_nothing_up_and_open_again(site: Site) -> None:
    firefox = site.firefox
    texts = [text for answer in HOSTILE.values() for text in ("Write", answer)]
    export = {"format": "inpage-chats", "version": 1, "chats": [chat_of(*texts)]}
    give(site, "#importFile", "chats.json", json.dumps(export).encode())
    shown = f"{ANSWERS}.map(answer => answer.querySelector('.text').textContent.trim())"
    for opens_again in (True, False):
        firefox.until(f"{shown}.filter(Boolean).length === {len(HOSTILE)}")
        assert site.python("1 + 1") == 2
        if opens_again:
            firefox.reload()
            firefox.until("document.body.dataset.model === 'ready'")
    firefox.run(TALK)
    firefox.click("#newChat")
    firefox.type("#draft", f"Still there?{ENTER}")
    firefox.until(f"{NOTES}.at(-1)?.includes('60 tokens')")


def test_hostile_pdf_files_hold_nothing_up(site: Site) -> None:
    firefox = site.firefox
    firefox.run(TALK)
    firefox.until("!document.querySelector('#attach').hidden")
    firefox.run(HURRY)
    give(site, "#attachFiles", "endless.pdf", endless())
    firefox.until("document.querySelector('#notices').innerText.includes('takes too long')")
    firefox.run("window.setTimeout = window.patient")
    firefox.click("#newChat")
    give(site, "#attachFiles", "active.pdf", active())
    firefox.until(f"{ATTACHED}.startsWith('active.pdf · ')")
    firefox.type("#draft", f"Sum it up{ENTER}")
    firefox.until(f"{NOTES}.at(-1)?.includes('60 tokens')")
    firefox.click(".question .file .open")
    firefox.until("document.querySelector('#readerText').innerText.includes('Harmless')")
    firefox.click("#reader form button")
    assert firefox.run("return window.hasRun ?? null") is None


def test_the_same_text_after_a_lost_device(site: Site) -> None:
    undisturbed = site.firefox.run(ANSWER, REQUEST)
    site.python("engine.model.session.forget()")
    site.python(ONE_BY_ONE)
    site.python(DESTROY_AT.replace("in AT", "in ['decode 2']"))
    outcome = site.firefox.run(STREAM, REQUEST)
    assert site.python("del model._generate, batches.arrived; losses") == ["decode 2"]
    assert outcome["tokens"] == undisturbed
    assert [kind for kind, _ in outcome["notices"]] == ["device_lost", "recovered"]


def test_tabs_share_an_engine(site: Site, toy_model: Path) -> None:
    firefox, greedy = site.firefox, greedy_of(toy_model)
    assert firefox.run(SHARE) is None
    assert firefox.run("return (await engine.load(given)).name", NAME) == NAME
    with firefox.another_tab(site.url):
        assert firefox.run(SHARE) == NAME, "it is loaded there already"
        assert firefox.run(ASK, greedy.prompt) == greedy.tokens
    assert firefox.run(ASK, greedy.prompt) == greedy.tokens
    firefox.run("await engine.dispose()")


def test_without_webgpu_the_processor_answers(
    firefox: Firefox, choosing_site_url: str, toy_model: Path
) -> None:
    """A first minute in Firefox as it comes on Linux."""
    with firefox.without("dom.webgpu.enabled"):
        firefox.go(choosing_site_url)
        assert firefox.run("return (await inpage.ready).device.kind") == "cpu"
        assert firefox.run("return document.querySelector('#failure').hidden") is True
        firefox.until("!document.querySelector('#load').disabled")
        running = firefox.run("return document.querySelector('.welcome .threads').innerText")
        assert running.startswith("Running on your processor (")
        firefox.click("#load")
        firefox.until("document.body.dataset.model === 'ready'")
        firefox.run(TALK)
        firefox.type("#draft", f"Am I heard?{ENTER}")
        firefox.until(f"{NOTES}[0]?.includes('60 tokens')")
        greedy = greedy_of(toy_model)
        assert firefox.run(ASK.replace("engine.", "inpage."), greedy.prompt) == greedy.tokens


def test_the_card_without_webgpu_names_the_switch(site: Site) -> None:
    """WebGPU is there on Linux, and switched off; the site asks for it."""
    firefox = site.firefox
    with firefox.without("dom.webgpu.enabled"):
        firefox.go(site.url)
        firefox.until("!document.querySelector('#failure').hidden")
    card = firefox.run("return document.querySelector('#failure').innerText")
    assert "This browser has no WebGPU" in card
    assert "In Firefox on Linux, open about:config" in card
    assert "dom.webgpu.enabled" in card


def test_without_the_network_the_page_and_its_model_come_back(site: Site) -> None:
    """The last one in the file: nothing is served from here on."""
    firefox = site.firefox
    firefox.go(site.url)
    firefox.until("document.body.dataset.model === 'ready'")  # what is kept is loaded on arrival
    assert [kept["name"] for kept in firefox.run("return inpage.stored()")] == [NAME]
    undisturbed = firefox.run(ANSWER, REQUEST)
    firefox.until("document.body.dataset.kept")
    site.stop_serving()
    firefox.go("about:blank")
    firefox.go(site.url)
    firefox.until("document.body.dataset.model === 'ready'")
    assert firefox.run("return crossOriginIsolated") is True
    assert firefox.run(ANSWER, REQUEST) == undisturbed
