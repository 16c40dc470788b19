"""Python that does not return, and a worker that ends: nothing stays pending, nothing is lost."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.toy_model import NAME
from tests.web.user import User

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

LOOP = "while True: pass"
LONG = """
from time import time
until = time() + 1
while time() < until: pass
"""
QUESTION = "Tell me of the fox"
HANG = """
from js import BroadcastChannel
def hang():
    BroadcastChannel.new("hangs").postMessage("")
    while True: pass
"""
# Once: whoever interrupts it has it as it was.
HANGING_TEMPLATE = """
template, render = model.chat_template, model.chat_template.render
def render_and_hang(*arguments, **others):
    del template.render
    hang()
template.render = render_and_hang
"""
HANGING_TOKENIZER = """
from py_runtime.tokens import Tokenizer
own = Tokenizer.__dict__["from_json"]
def read_and_hang(*arguments):
    Tokenizer.from_json = own
    hang()
Tokenizer.from_json = read_and_hang
"""
HANGING_ANSWER = """
write = type(model)._generate
async def write_and_hang(*arguments):
    tokens = 0
    async for piece in write(model, *arguments):
        yield piece
        tokens += len(piece.token_ids)
        if tokens > 8: hang()
model._generate = write_and_hang
"""
SLOW_PREFILL = """
import asyncio
session = model.session
session.forget()
class Fixed(type(session._pace)):
    def took(self, tokens, seconds): pass
    def next_chunk(self): return 16
session._pace, run = Fixed(16), session._run_chunk
async def slowly(inputs):
    await asyncio.sleep(0.2)
    return await run(inputs)
session._run_chunk = slowly
"""


# The first call decides how often the page looks whether Python answers, and it is early.
LOOK_OFTEN = """
if (location.protocol === "http:") {
    import("/client.js").then(({patience}) => Object.assign(patience, {beat: 100, beats: 100}));
}
"""


@pytest.fixture(scope="module")
def fresh(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """Open a page of its own, with nothing loaded."""
    context = browser.new_context()
    user = User(context.new_page(), toy_site_url)
    user.page.add_init_script(LOOK_OFTEN)
    user.open()
    yield user
    context.close()


def line_of(user: User) -> Locator:
    return user.page.locator(".busy")


def outcome(user: User, script: str) -> str:
    """Return how a call ended: its error's code, or its value."""
    value: str = user.page.evaluate(f"{script}.then(value => value, error => error.code)")
    return value


def begin(user: User, *calls: str) -> None:
    """Begin calls whose outcomes are looked at later."""
    user.page.evaluate(
        f"""() => {{
            globalThis.outcomes = null;
            Promise.all([{", ".join(calls)}].map(
                call => call.then(() => "answered", error => error.code)
            )).then(codes => {{ outcomes = codes; }});
        }}"""
    )


def outcomes(user: User) -> list[str]:
    codes: list[str] = user.page.wait_for_function("() => outcomes").json_value()
    return codes


def python(user: User, code: str) -> object:
    return user.page.evaluate("code => inpage.python(code)", code)


def load_by_script(user: User) -> None:
    user.page.evaluate(
        """name => {
            globalThis.loaded = null;
            inpage.load(name).then(model => { loaded = model.name; });
        }""",
        NAME,
    )
    user.page.wait_for_function("name => loaded === name", arg=NAME)


def expect_hang(user: User) -> None:
    """Listen for the hang that `await_hang` waits for."""
    user.page.evaluate(
        """() => {
            globalThis.hangs = false;
            new BroadcastChannel("hangs").onmessage = () => { hangs = true; };
        }"""
    )


def hang_in(user: User, code: str) -> None:
    """Run code that makes Python hang once it is reached."""
    expect_hang(user)
    python(user, HANG + code)


def await_hang(user: User) -> None:
    user.page.wait_for_function("() => hangs")


@pytest.fixture
def impatient(user: User) -> Iterator[User]:
    """Tell a user soon that Python does not answer."""
    user.be_patient(beats=10, cancel=500, interrupt=100)
    yield user
    if not user.page.evaluate("inpage.loaded"):
        load_by_script(user)
    user.be_patient(beats=100, cancel=2000)
    assert user.complaints == []


@pytest.fixture(scope="module")
def expected(user: User) -> str:
    """Return the toy's answer, always taking the likeliest token."""
    text = user.text_of(user.ask(QUESTION))
    assert text
    return text


def test_a_long_prefill_that_answers_is_no_hang(user: User, expected: str) -> None:
    """Prefilling takes longer than anybody's patience; the event loop answers meanwhile."""
    python(user, SLOW_PREFILL)
    user.be_patient(beats=20)
    user.new_chat()
    expect(user.ask("fox and hound " * 20).locator(".note")).to_contain_text("tokens")
    assert not [url for url in user.requests if "recovery" in url], "the line was shown"
    python(user, "del session._run_chunk")
    user.be_patient(beats=100)


def test_a_loop_in_the_console_is_interrupted(impatient: User, expected: str) -> None:
    page = impatient.page
    page.get_by_role("button", name="Python").click()
    page.get_by_role("textbox", name="Code").fill(LOOP)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".busy")).to_contain_text("not responding")
    page.get_by_role("button", name="Interrupt").click()
    expect(page.get_by_role("log")).to_contain_text("KeyboardInterrupt")
    expect(line_of(impatient)).to_be_hidden()
    assert python(impatient, "1 + 1") == 2
    page.get_by_role("button", name="Close the panel").click()
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def test_calls_that_wait_behind_it_are_answered(impatient: User) -> None:
    begin(impatient, f"inpage.python('{LOOP}')", "inpage.models()", "inpage.unload()")
    impatient.page.get_by_role("button", name="Interrupt").click()
    assert outcomes(impatient) == ["python_error", "answered", "answered"]
    expect(line_of(impatient)).to_be_hidden()


def test_stop_interrupts_a_template_without_an_end(impatient: User, expected: str) -> None:
    impatient.be_patient(beats=1_000_000)  # Stop alone does it
    hang_in(impatient, HANGING_TEMPLATE)
    impatient.new_chat()
    impatient.composer.fill(QUESTION)
    impatient.composer.press("Enter")
    await_hang(impatient)
    impatient.stop.click()
    expect(impatient.answered().locator(".note")).to_have_text("Stopped")
    expect(impatient.answers.last.locator(".error")).to_be_empty()
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def test_stop_spares_the_code_of_another_call(impatient: User) -> None:
    """It waits: what it would break off is not its own."""
    impatient.be_patient(cancel=100)
    begin(
        impatient,
        f"inpage.python(`{LONG}`)",
        "inpage.completions.create({ prompt: 'fox', signal: AbortSignal.timeout(1) })",
    )
    assert outcomes(impatient) == ["answered", "answered"]


def test_a_load_is_interrupted_and_the_next_one_loads(impatient: User, expected: str) -> None:
    hang_in(impatient, HANGING_TOKENIZER)
    begin(impatient, f"inpage.load('{NAME}')")
    await_hang(impatient)
    impatient.page.get_by_role("button", name="Interrupt").click()
    assert outcomes(impatient) == ["aborted"]
    assert impatient.page.evaluate("inpage.loaded") is None
    impatient.load()
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def test_an_interrupt_leaves_an_engine_that_answers_alone(impatient: User) -> None:
    assert impatient.page.evaluate("inpage.interrupt()") is True
    assert python(impatient, "sum(number % 7 for number in range(10**6))") == 2999997
    late = "import signal; signal.raise_signal(signal.SIGINT); 'went on'"
    assert python(impatient, late) == "went on"


def test_a_restart_keeps_what_was_written_and_brings_the_model_back(
    impatient: User, expected: str
) -> None:
    hang_in(impatient, HANGING_ANSWER)
    impatient.new_chat()
    impatient.composer.fill(QUESTION)
    impatient.composer.press("Enter")
    page = impatient.page
    page.evaluate("() => { globalThis.before = [inpage, inpage.ready]; }")
    await_hang(impatient)
    page.get_by_role("button", name="Restart the engine").click()
    expect(page.locator("body")).to_have_attribute("data-model", "ready")
    message = impatient.answered()
    expect(message.locator(".error")).to_contain_text("was restarted")
    written = impatient.text_of(message)
    assert written
    assert expected.startswith(written)
    assert page.evaluate("before[0] === inpage && before[1] !== inpage.ready")
    assert page.evaluate("inpage.loaded.name") == NAME
    assert impatient.text_of(impatient.regenerate()) == expected


def test_a_load_takes_the_place_of_a_call_that_hangs(impatient: User, expected: str) -> None:
    impatient.be_patient(beats=1_000_000)  # the load alone does it
    hang_in(impatient, HANGING_TEMPLATE)
    begin(impatient, "inpage.countTokens([{ role: 'user', content: 'fox' }])")
    await_hang(impatient)
    load_by_script(impatient)
    assert outcomes(impatient) == ["aborted"]
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def restart_with(user: User, code: str) -> None:
    """Restart the engine, and run some Python before it brings the model back."""
    user.page.evaluate(
        """code => {
            globalThis.restarted = null;
            inpage.restart().then(
                () => { restarted = "restored"; }, error => { restarted = error.code; });
            return inpage.python(code).then(() => null);
        }""",
        code,
    )


def restarted(user: User) -> str:
    """Wait for the restart and return how it ended."""
    code: str = user.page.wait_for_function("() => restarted").json_value()
    return code


WATCHED_TEMPLATE = """
from py_runtime.model import Model
rendered = []
warm_template = Model._warm_template
Model._warm_template = lambda model: (rendered.append(model), warm_template(model))
"""
RENDERED = "await engine.loaded.last.warming; len(rendered)"


def test_a_model_that_is_brought_back_renders_its_template_only_when_asked(
    impatient: User,
) -> None:
    """The engine may have hung in it: it would hang again, unasked."""
    restart_with(impatient, WATCHED_TEMPLATE)
    assert restarted(impatient) == "restored"
    assert python(impatient, RENDERED) == 0
    load_by_script(impatient)
    assert python(impatient, RENDERED) == 1


def test_a_load_takes_the_place_of_a_restore_that_hangs(impatient: User, expected: str) -> None:
    impatient.be_patient(beats=1_000_000)  # the load alone does it
    expect_hang(impatient)
    restart_with(impatient, HANG + HANGING_TOKENIZER)
    await_hang(impatient)  # in the restore: the load has a tokenizer that does not hang
    load_by_script(impatient)
    assert restarted(impatient) == "aborted"
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def test_a_restart_out_of_a_restore_that_hangs_brings_nothing_back(impatient: User) -> None:
    expect_hang(impatient)
    restart_with(impatient, HANG + HANGING_TOKENIZER)
    await_hang(impatient)
    expect(line_of(impatient).first).to_be_visible()
    again = "inpage.restart().then(model => model?.name ?? 'nothing')"
    assert outcome(impatient, again) == "nothing"
    assert restarted(impatient) == "restarted"
    assert impatient.page.evaluate("inpage.loaded") is None


LATE_LISTING = """
import asyncio
from py_runtime.app.engine import Engine
listing, listed = asyncio.Event(), Engine._listed
async def list_late(engine):
    Engine._listed = listed
    await listing.wait()
    return await listed(engine)
Engine._listed = list_late
"""


def test_a_restore_that_comes_after_a_load_is_given_up(impatient: User) -> None:
    restart_with(impatient, LATE_LISTING)
    load_by_script(impatient)
    python(impatient, "loaded = engine.loaded.last; listing.set()")
    assert restarted(impatient) == "aborted"
    assert python(impatient, "[loaded] == list(engine.loaded)")


def test_a_worker_that_closes_itself_rejects_every_call(impatient: User, expected: str) -> None:
    page = impatient.page
    begin(
        impatient,
        "inpage.python('import asyncio; await asyncio.sleep(10**6)')",
        "inpage.python('import js; js.close(); await asyncio.sleep(10**6)')",
    )
    assert outcomes(impatient) == ["crashed", "crashed"]
    assert outcome(impatient, "inpage.models()") == "crashed"
    card = page.get_by_role("alert").filter(has_text="The engine stopped")
    expect(card).to_contain_text("the worker has ended")
    card.get_by_role("button", name="Restart the engine").click()
    expect(card).to_be_hidden()
    expect(page.locator("body")).to_have_attribute("data-model", "ready")
    impatient.new_chat()
    assert impatient.text_of(impatient.ask(QUESTION)) == expected


def test_without_isolation_a_restart_is_all_there_is(browser: Browser, toy_site_url: str) -> None:
    def without_isolation(route: Route) -> None:
        answer = route.fetch()
        headers = {
            name: value
            for name, value in answer.headers.items()
            if not name.startswith("cross-origin-")
        }
        route.fulfill(response=answer, headers=headers)

    context = browser.new_context()
    user = User(context.new_page(), toy_site_url)
    # As where the service worker could not help either.
    user.page.add_init_script("sessionStorage.setItem('inpage-isolation-reloaded', Date.now())")
    user.page.add_init_script(LOOK_OFTEN)
    user.page.route(toy_site_url, without_isolation)
    user.open()
    assert user.page.evaluate("crossOriginIsolated") is False
    user.load()
    user.talk_on()
    user.choose(max_tokens="16", temperature="0")
    text = user.text_of(user.ask(QUESTION))
    user.be_patient(beats=10)
    assert user.page.evaluate("inpage.interrupt()") is False
    begin(user, f"inpage.python('{LOOP}')", "inpage.models()")
    expect(line_of(user)).to_be_visible()
    expect(user.page.get_by_role("button", name="Interrupt")).to_be_hidden()
    user.page.get_by_role("button", name="Restart the engine").click()
    assert outcomes(user) == ["restarted", "restarted"]
    expect(user.page.locator("body")).to_have_attribute("data-model", "ready")
    assert user.text_of(user.regenerate()) == text
    context.close()
