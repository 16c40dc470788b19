"""A first minute without a graphics card: the page chooses the processor, says so, and answers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserType, Page, expect

from tests.conftest import ONE_COMPILER
from tests.cpu import in_runtime
from tests.runners import PageRunner, patient
from tests.toy_model import NAME, TOKENS, greedy_of
from tests.web.test_failures import begin_worker_with, expect_explanation, rejection
from tests.web.user import User
from tools import browser as browser_tools

pytestmark = pytest.mark.browser

RUNNING = re.compile(r"Running on your processor \(\d+ threads?\)\.")
# However long the pool waits for a thread: once a test says so, its clock runs ten times as fast.
CLOCK = """{
    const now = performance.now.bind(performance);
    performance.now = () => (globalThis.speed ?? 1) * now();
}"""
HURRY = "import js; js.speed = 10"
QUESTION = "Tell me of the fox"
THREADS = 12
HEARD = """() => {
    globalThis.kinds = [];
    inpage.onNotice(({kind}) => kinds.push(kind));
}"""
LOAD = "async ([name, options]) => (await inpage.load(name, options)).device.kind"
DEVICE = "device = engine.model.graph.device; [device.kind, device.threads]"
NO_VECTORS = "WebAssembly.validate = () => false;"
ASK = """async ([prompt, tokens]) => {
    const request = {prompt_token_ids: prompt, temperature: 0, ignore_eos: true};
    const {choices: [choice]} = await inpage.completions.create({...request, max_tokens: tokens});
    return choice.token_ids;
}"""


@pytest.fixture(scope="module")
def without_gpu(browser_type: BrowserType) -> Iterator[Browser]:
    """Start a browser as people have it on a machine without a graphics card: no adapter."""
    flags = [*browser_tools.QUIET_FLAGS, "--disable-gpu", ONE_COMPILER]
    browser = browser_type.launch(executable_path=str(browser_tools.find()), args=flags)
    yield patient(browser)
    browser.close()


def first_minute(page: Page, url: str, toy_model: Path) -> User:
    """Open the page, load its model by the button, and ask."""
    user = User(page, url)
    user.open()
    expect(page.locator("#failure")).to_be_hidden()
    expect(page.locator(".welcome .threads")).to_have_text(RUNNING)
    user.load()
    user.choose(max_tokens="4", temperature="0")
    user.talk_on()
    expect(user.ask("Am I heard?").locator(".note")).to_contain_text("4 tokens")
    greedy = greedy_of(toy_model)
    assert page.evaluate(ASK, [greedy.prompt, TOKENS]) == greedy.tokens
    assert user.complaints == []
    return user


def test_without_an_adapter(without_gpu: Browser, choosing_site_url: str, toy_model: Path) -> None:
    user = first_minute(without_gpu.new_page(), choosing_site_url, toy_model)
    page = user.page
    page.locator("#modelChip").click()
    panel = page.locator("#models")
    expect(panel.locator("p.processor")).to_have_text(re.compile(RUNNING.pattern + " A graphics"))
    expect(panel.get_by_text("Models run on your graphics card")).to_be_hidden()
    expect(panel.get_by_text("No graphics card is in use").first).to_be_hidden()
    panel.locator("#loadedName").click()
    panel.get_by_role("button", name="Verify on this machine").click()
    expect(panel.locator("#verdict")).to_contain_text("This browser and processor compute")
    page.keyboard.press("Escape")
    user.choose_language("de")
    expect(page.locator(".welcome .threads")).to_contain_text("Läuft auf deinem Prozessor (")
    page.close()


@pytest.mark.thorough
def test_on_a_phone(
    without_gpu: Browser, choosing_site_url: str, toy_model: Path, playwright: Any
) -> None:
    phone = playwright.devices["Pixel 7"]
    context = without_gpu.new_context(**phone)
    first_minute(context.new_page(), choosing_site_url, toy_model)
    context.close()


def test_a_software_adapter_loses(browser: Browser, choosing_site_url: str) -> None:
    """WebGPU is there, as software, and is not opened; the address may ask for it all the same."""
    page = browser.new_page()
    for asked, kind in (("", "cpu"), ("?device=gpu", "gpu")):
        page.goto(f"{choosing_site_url}{asked}")
        report = page.evaluate("inpage.ready")
        assert report["device"]["kind"] == kind
        assert (report["device"]["threads"] is None) == (kind == "gpu")
    page.close()


@pytest.mark.thorough  # the GPU
def test_a_load_may_ask_for_another_device(
    browser: Browser, choosing_site_url: str, toy_model: Path
) -> None:
    page = browser.new_page()
    page.goto(f"{choosing_site_url}?device=gpu")
    greedy = greedy_of(toy_model)
    for options, kind in (({"device": "cpu"}, "cpu"), ({"kernels": "cpu"}, "cpu"), ({}, "gpu")):
        assert page.evaluate(LOAD, [NAME, options]) == kind
        expect(page.locator("body")).to_have_attribute("data-device", kind)
        assert page.evaluate(ASK, [greedy.prompt, TOKENS]) == greedy.tokens
    refused = """async ([name, options]) =>
        inpage.load(name, options).catch(({code, param}) => [code, param])"""
    for options, param in (
        ({"device": "tpu"}, "device"),
        ({"device": "cpu", "kernels": "portable"}, "kernels"),
        ({"device": "gpu", "kernels": "cpu"}, "kernels"),
    ):
        assert page.evaluate(refused, [NAME, options]) == ["invalid_request", param]
    page.close()


@pytest.mark.thorough  # cpu/test_pool.py has it natively
def test_a_thread_that_ends_in_the_middle_of_a_chunk(
    browser: Browser, toy_site_url: str, toy_model: Path
) -> None:
    """The thread is missed after a while, and what was asked is answered on another device.

    There are more threads than cores: whenever they end, some wait for one with a chunk in hand.
    """
    page = browser.new_page()
    begin_worker_with(page, CLOCK)
    user = User(page, toy_site_url)
    user.open()
    page.evaluate(LOAD, [NAME, {"threads": THREADS}])
    user.has_loaded()
    user.choose(max_tokens="16", temperature="0")
    user.talk_on()
    expected = user.text_of(user.ask(QUESTION))
    page.evaluate(HEARD)
    runner = PageRunner(page, "engine.model.graph.device")
    runner.python(HURRY)
    runner.run(in_runtime.__name__, "end_threads_that_compute")
    user.new_chat()
    assert user.text_of(user.ask(QUESTION)) == expected
    expect(user.answers.last.locator(".error")).to_be_empty()
    assert page.evaluate("kinds") == ["device_lost", "recovered"]
    assert runner.python(DEVICE) == ["cpu", THREADS]
    greedy = greedy_of(toy_model)
    assert page.evaluate(ASK, [greedy.prompt, TOKENS]) == greedy.tokens
    assert user.complaints == []
    page.close()


def test_where_nothing_computes_the_page_says_what_to_do(
    without_gpu: Browser, choosing_site_url: str
) -> None:
    page = without_gpu.new_page()
    begin_worker_with(page, NO_VECTORS)
    page.goto(choosing_site_url)
    expect_explanation(page, "No graphics processor is available", "driver", "found no GPU")
    assert rejection(page) == "no-adapter"
    page.close()
