"""Tabs on the processor: two that compute at the same time, and one that sleeps."""

import os
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.toy_model import CONTEXT, NAME, TOKENS, Greedy, greedy_of
from tests.web.user import until

pytestmark = pytest.mark.browser

ASLEEP_SECONDS = 11  # PATIENCE_MILLISECONDS in shaders/cpu/replay.c is less
LONG = CONTEXT - 100  # tokens: an answer that takes a while
# Begins an answer; its tokens so far are in `answers[name]`, all of them are what it resolves to.
BEGIN = """([name, prompt, tokens]) => {
    const ids = (globalThis.answers ??= {})[name] = [];
    const asked = {prompt_token_ids: prompt, temperature: 0, ignore_eos: true, max_tokens: tokens,
        speculate: false};
    (globalThis.ends ??= {})[name] = (async () => {
        for await (const {choices} of await inpage.completions.create({...asked, stream: true})) {
            ids.push(...choices[0]?.token_ids ?? []);
        }
        return ids;
    })();
}"""
END = "name => ends[name]"
COUNT = "name => answers[name].length"


@pytest.fixture
def tabs(browser: Browser, toy_site_url: str) -> list[Page]:
    """Open two tabs of one browser, each with the toy on a processor of its own."""
    context = browser.new_context()
    pages = [context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(f"{toy_site_url}?device=cpu")
        kind = page.evaluate(f"inpage.load('{NAME}').then(({{ device }}) => device.kind)")
        assert kind == "cpu"
    return pages


@pytest.fixture
def greedy(toy_model: Path) -> Greedy:
    return greedy_of(toy_model)


@pytest.mark.thorough  # cpu/test_pool.py has the threads
def test_two_tabs_answer_at_the_same_time(tabs: list[Page], greedy: Greedy) -> None:
    for page in tabs:
        page.evaluate(BEGIN, ["long", greedy.prompt, LONG])
    first, second = (page.evaluate(END, "long") for page in tabs)
    assert first == second
    assert (len(first), first[:TOKENS]) == (LONG, greedy.tokens)
    tabs[0].context.close()


@pytest.mark.thorough  # sleeps for as long as a thread may take
def test_a_tab_that_sleeps_in_the_background_goes_on_later(
    browser: Browser, tabs: list[Page], greedy: Greedy
) -> None:
    """All its threads stop in the middle, for longer than one may take for its part of the work."""
    page, other = tabs
    page.evaluate(BEGIN, ["whole", greedy.prompt, LONG])
    whole = page.evaluate(END, "whole")
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setFocusEmulationEnabled", {"enabled": False})
    other.bring_to_front()
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [process["id"] for process in processes if process["type"] == "renderer"]
    page.evaluate(BEGIN, ["slept", greedy.prompt, LONG])
    until(page, lambda: page.evaluate(COUNT, "slept") > 0, "the first token")
    try:
        for renderer in renderers:
            os.kill(renderer, signal.SIGSTOP)
        time.sleep(ASLEEP_SECONDS)
    finally:
        for renderer in renderers:
            os.kill(renderer, signal.SIGCONT)
    assert page.evaluate(COUNT, "slept") < LONG
    assert page.evaluate(END, "slept") == whole
    assert page.evaluate("inpage.loaded.device.kind") == "cpu"
    page.context.close()
