"""Looking into a model from an answer: the logit lens and attention, in the dock."""

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from tests.web.test_engine_room import exported, panel
from tests.web.user import User, until

pytestmark = pytest.mark.browser

HELD = "inpage.python('engine.device.counters.buffer_bytes_alive')"


@pytest.fixture(scope="module")
def answered(user: User) -> User:
    """Ask the toy once."""
    user.ask("the quick brown fox")
    user.answered()
    return user


def open_from_answer(user: User, name: str) -> Locator:
    user.answers.last.get_by_role("button", name="More").click()
    user.page.get_by_role("menuitem", name=name).click()
    expect(user.page.locator("#dockTitle")).to_have_text(name)
    return user.page.locator(f"#panel-{name.split()[-1].lower()}")


def test_an_answer_leads_to_its_logit_lens_in_two_clicks(answered: User) -> None:
    lens = open_from_answer(answered, "Logit lens")
    cells = lens.locator(".cell")
    expect(cells.first).to_be_visible()
    layers = answered.page.evaluate("inpage.glass('hooks').then(it => Object.keys(it))")
    count = sum(name.endswith("hook_resid_post") for name in layers)
    assert cells.count() % (count + 1) == 0
    expect(lens.get_by_role("heading", name="What comes after")).to_be_visible()
    runners = lens.locator(".inside-race li")
    expect(runners).to_have_count(8)
    before = runners.first.locator(".share").text_content()
    lens.get_by_role("slider", name="Layer").fill("0")
    expect(runners.first.locator(".share")).not_to_have_text(before or "")
    rows = json.loads(exported(answered.page, "Data (JSON)"))
    assert len(rows) == cells.count()
    assert b"<svg" in exported(answered.page, "Picture (SVG)")


def test_a_closed_dock_keeps_nothing_on_the_device(answered: User) -> None:
    def held() -> int:
        nbytes: int = answered.page.evaluate(HELD)
        return nbytes

    answered.page.evaluate("inpage.glass('close')")
    before = held()
    lens = open_from_answer(answered, "Logit lens")
    expect(lens.locator(".cell").first).to_be_visible()
    lens.locator('[data-at="0"]').click()
    until(answered.page, lambda: held() > before, "the lens has graphs of its own")
    answered.page.locator("#dockClose").click()
    until(answered.page, lambda: held() == before, "closing the dock frees them")


def test_a_click_on_a_cell_follows_its_position(answered: User) -> None:
    lens = open_from_answer(answered, "Logit lens")
    heads = lens.locator(".inside-map .head")
    expect(heads.last).to_have_class(re.compile("chosen"))
    lens.locator('[data-at="0"]').click()
    expect(heads.first).to_have_class(re.compile("chosen"))


def test_heads_say_where_they_look(answered: User) -> None:
    attention = open_from_answer(answered, "Attention")
    heads = attention.get_by_role("listbox", name="Heads").get_by_role("option")
    expect(heads.first).to_be_visible()
    expect(heads.first).to_have_attribute("aria-selected", "true")
    heads.last.click()
    expect(heads.last).to_have_attribute("aria-selected", "true")
    expect(attention.locator(".room-facts")).to_contain_text("previous token")
    tokens = attention.locator(".inside-tokens button")
    tokens.nth(3).hover()
    expect(tokens.nth(3)).to_have_class("chosen")
    shares = tokens.evaluate_all("all => all.map(it => parseFloat(it.title))")
    assert sum(shares) == pytest.approx(100, abs=5)
    assert max(shares[4:]) == 0, "no head looks ahead"


def test_own_text_needs_no_answer_and_links_carry_none_of_it(answered: User) -> None:
    lens = panel(answered, "lens", "Logit lens")
    lens.get_by_label("Look at").select_option("text")
    lens.get_by_role("textbox", name="Text").fill("a secret of mine")
    lens.get_by_label("Last positions").fill("3")
    lens.get_by_role("button", name="Look").click()
    expect(lens.locator(".inside-map .head")).to_have_count(3)
    assert "secret" not in answered.page.url
    assert "count=3" in answered.page.url
