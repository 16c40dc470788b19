"""Random users of one browser, and an oracle that watches them.

Two tabs ask, stop, reload and close; devices are lost, the worker ends, storage is cleared, the
network goes and comes. Whatever happens: no chat that was shown as saved is lost, no call stays
pending, and greedy tokens are those of the undisturbed model afterwards.

    python -m tests.web.chaos --steps 2000 --seed 7     # `make chaos STEPS= SEED=`

A violation names its seed and step, and the same seed takes the same steps again.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.conftest import serving
from tests.toy_model import NAME, write_toy_model
from tests.web.user import User
from tools import browser as browsers

QUIET_SECONDS = 120  # for anything to come to an end on a busy machine
STEPS_BETWEEN_CHECKS = 12
GREEDY = """() => inpage.completions.create({
  prompt: "the quick brown fox", temperature: 0, max_tokens: 8, ignore_eos: true, logprobs: true,
}).then(({choices}) => choices[0].text)"""
# What this browser keeps loads by itself on arrival, or fails.
SETTLED = """async () => {
  await inpage.ready;
  const model = await import(new URL("ui/models/models.js", document.baseURI));
  const error = document.getElementById("loadError");
  const isHere = ({stored}) => stored;
  const isDone = () => inpage.loaded || error.textContent || !model.models.some(isHere);
  while (!model.isListed || model.loading || !isDone()) {
    await new Promise(next => setTimeout(next, 50));
  }
}"""
STORED = """async () => {
  const {connect} = await import(new URL("ui/chat_storage.js", document.baseURI));
  const {allChats} = await import(new URL("ui/chats.js", document.baseURI));
  await connect();
  const {pathOf} = await import(new URL("ui/chats.js", document.baseURI));
  return allChats().map((chat) => ({id: chat.id, texts: pathOf(chat).map(({content}) => content)}));
}"""
CLEAR_MODELS = """
from py_runtime.bridge.opfs import delete_stored_file, list_stored
for name, *_ in await list_stored():
    try:
        await delete_stored_file(name)
    except Exception:  # another tab has it open
        pass
"""


class Violation(AssertionError):
    """An event that must never happen, with the seed and the step that show it."""


@dataclass
class Tab:
    user: User
    page: Page


@dataclass
class Chaos:
    context: BrowserContext
    url: str
    seed: int
    tabs: list[Tab] = field(default_factory=list)
    saved: dict[str, str] = field(default_factory=dict)  # question → answer, shown whole
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.asked = 0
        self.is_online = True
        self.expected = ""

    # What users and the world do ------------------------------------------------------------

    def ask(self, tab: Tab) -> None:
        """Ask and wait for the end: what is then on screen counts as saved."""
        self.make_ready(tab)
        self.asked += 1
        question = f"fox {self.asked}"
        answer = self.send(tab, question)
        if not answer.locator(".error").is_visible():
            self.saved.update(pair for pair in texts_in(tab.page) if pair[0] == question)

    def send(self, tab: Tab, question: str) -> Locator:
        """Send the question, see it on screen, and wait for its answer."""
        tab.user.composer.fill(question)
        tab.user.composer.press("Enter")
        expect(tab.user.questions.last).to_contain_text(question)
        return tab.user.answered()

    def ask_and_stop(self, tab: Tab) -> None:
        self.make_ready(tab)
        self.asked += 1
        tab.user.composer.fill(f"dog {self.asked}")
        tab.user.composer.press("Enter")
        with suppress(PlaywrightError):  # the answer may have ended by then
            tab.user.stop.click(timeout=1000)
        tab.user.answered()

    def new_chat(self, tab: Tab) -> None:
        tab.user.new_chat()

    def reload(self, tab: Tab) -> None:
        self.go_online()
        tab.page.reload()
        self.wait_for_start(tab)

    def reload_and_ask_at_once(self, tab: Tab) -> None:
        """Send a question as soon as the page takes one: nothing has settled by then."""
        self.go_online()
        tab.page.reload(wait_until="commit")
        tab.page.wait_for_function("() => document.querySelector('#composer')?.onsubmit")
        self.asked += 1
        question = f"early {self.asked}"
        tab.user.composer.fill(question)
        tab.user.composer.press("Enter")
        expect(tab.user.questions.last).to_contain_text(question)
        self.wait_for_start(tab)
        expect(tab.user.questions.last).to_contain_text(question)
        self.have_a_model(tab)  # the question may be waiting for one
        tab.user.answered()

    def lose_the_device(self, tab: Tab) -> None:
        tab.page.evaluate("inpage.python('device.destroy()').catch(() => {})")

    def end_the_worker(self, tab: Tab) -> None:
        self.go_online()  # a worker that begins anew fetches its script
        tab.page.evaluate("inpage.python('import js; js.close()').catch(() => {}); null")
        tab.page.evaluate("inpage.restart().then(() => null)")

    def clear_models(self, tab: Tab) -> None:
        tab.page.evaluate("code => inpage.python(code).catch(() => {})", CLEAR_MODELS)

    def unload(self, tab: Tab) -> None:
        tab.page.evaluate("inpage.unload()")

    def toggle_network(self, tab: Tab) -> None:
        self.is_online = not self.is_online
        self.context.set_offline(not self.is_online)

    def open_or_close_a_tab(self, tab: Tab) -> None:
        if len(self.tabs) == 1:
            self.open_tab()
        else:
            self.tabs.remove(tab)
            tab.page.close()

    # Helpers --------------------------------------------------------------------------------

    def open_tab(self) -> Tab:
        self.go_online()
        page = self.context.new_page()
        tab = Tab(User(page, self.url), page)
        page.goto(self.url)
        self.tabs.append(tab)
        self.wait_for_start(tab)
        return tab

    def wait_for_start(self, tab: Tab) -> None:
        tab.page.evaluate(SETTLED)
        tab.user.has_opened()
        tab.user.talk_on()

    def make_ready(self, tab: Tab) -> None:
        """Make sure that a model is loaded and nothing is under way."""
        tab.user.answered()
        self.have_a_model(tab)

    def have_a_model(self, tab: Tab) -> None:
        if tab.page.evaluate("inpage.loaded?.name") != NAME:
            self.go_online()
            tab.page.evaluate(f"inpage.load({NAME!r}).then(() => null)")

    def go_online(self) -> None:
        if not self.is_online:
            self.toggle_network(self.tabs[0])

    # Steps and checks -----------------------------------------------------------------------

    def run(self, steps: int) -> None:
        first = self.open_tab()
        self.make_ready(first)
        first.user.choose(max_tokens="6", temperature="0")
        self.expected = first.page.evaluate(GREEDY)
        for step in range(steps):
            self.step(step)
            if step % STEPS_BETWEEN_CHECKS == STEPS_BETWEEN_CHECKS - 1:
                self.check(step)
                self.report(step + 1)
        self.check(steps)

    def step(self, number: int) -> None:
        actions: dict[Callable[[Tab], None], int] = {
            self.ask: 8,
            self.ask_and_stop: 4,
            self.new_chat: 2,
            self.reload: 1,
            self.reload_and_ask_at_once: 1,
            self.lose_the_device: 2,
            self.end_the_worker: 1,
            self.clear_models: 1,
            self.unload: 1,
            self.toggle_network: 2,
            self.open_or_close_a_tab: 1,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        tab = self.random.choice(self.tabs)
        self.log.append(f"{number} {action.__name__} in tab {self.tabs.index(tab)}")
        tab.user.come_to_front()
        try:
            action(tab)
        except Violation:
            raise
        except Exception as error:
            raise self.violation(number, f"{action.__name__}: {error}") from error

    def check(self, step: int) -> None:
        """Compare with the oracle, once all is quiet."""
        self.go_online()
        try:
            for tab in self.tabs:
                tab.user.answered()
                self.make_ready(tab)
                if tab.page.evaluate(GREEDY) != self.expected:
                    raise self.violation(step, "greedy tokens are other ones")
                if tab.user.complaints:
                    raise self.violation(step, f"the page complains: {tab.user.complaints}")
            stored = self.stored_texts()
        except Violation:
            raise
        except Exception as error:
            raise self.violation(step, f"something stays pending: {error}") from error
        for question, answer in self.saved.items():
            if (question, answer) not in stored:
                raise self.violation(step, f"'{question}' and its answer are lost")

    def stored_texts(self) -> set[tuple[str, str]]:
        """Every (question, answer) that a new visit finds."""
        page = self.context.new_page()
        page.set_default_timeout(1000 * QUIET_SECONDS)
        page.goto(self.url)
        chats: list[dict[str, Any]] = page.evaluate(STORED)
        page.close()
        return {
            pair for chat in chats for pair in zip(chat["texts"], chat["texts"][1:], strict=False)
        }

    def report(self, steps: int) -> None:
        """Say how far a long run is."""
        print(f"{steps} steps, {len(self.saved)} turns saved, {len(self.tabs)} tabs", flush=True)

    def violation(self, step: int, what: str) -> Violation:
        steps = "\n  ".join(self.log[-20:])
        return Violation(f"seed {self.seed}, step {step}: {what}\n  {steps}")


def texts_in(page: Page) -> set[tuple[str, str]]:
    """Each text of a chat with the one that follows it, as this tab knows them."""
    chats: list[dict[str, Any]] = page.evaluate(STORED)
    texts = [chat["texts"] for chat in chats]
    return {pair for chat in texts for pair in pairwise(chat)}


def run_chaos(browser: Browser, url: str, seed: int, steps: int) -> Chaos:
    """Run the chaos; it raises Violation."""
    context = browser.new_context()
    chaos = Chaos(context, url, seed)
    try:
        chaos.run(steps)
    finally:
        context.close()
    return chaos


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}, {options.steps} steps", flush=True)
    expect.set_options(timeout=1000 * QUIET_SECONDS)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        models = write_toy_model(Path(folder)).parent
        with serving("--models", str(models), device="gpu") as url:  # which it loses
            browser = playwright.chromium.launch(
                executable_path=str(browsers.find()), args=browsers.flags_for_tests()
            )
            try:
                chaos = run_chaos(browser, url, options.seed, options.steps)
            except Violation as violation:
                print(violation, file=sys.stderr)
                return 1
            finally:
                browser.close()
    print(f"{len(chaos.saved)} turns saved, none lost; {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
