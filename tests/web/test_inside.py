"""Looking into a model, in the dock: logit lens, attention, patching, norms and neurons."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.conftest import serving
from tests.toy_model import write_toy_model
from tests.web.test_engine_room import exported, panel
from tests.web.test_looks import assert_accessible
from tests.web.user import User, until

pytestmark = pytest.mark.browser

# The panels that look at a text, what each shows, and its heading in both languages.
SHOWN = {"lens": ".cell", "attention": "[role=option]", "norms": "svg.wide", "neurons": ".cell"}
HEADINGS = {
    "lens": ("Logit lens", "Logit-Linse"),
    "attention": ("Attention", "Aufmerksamkeit"),
    "patching": ("Patching", "Patching"),
    "norms": ("Norms", "Normen"),
    "neurons": ("Neurons", "Neuronen"),
}
MIXERS = ("lfm2", "qwen3.5", "gemma 2")  # short convolutions, delta nets, sliding windows
EXPERTS = "gpt-oss"
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
    until(answered.page, lambda: cells.count() % (count + 1) == 0, "whole columns are drawn")
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
    expect(attention.locator(".room-facts")).to_have_count(2)
    cut, facts = attention.locator(".room-facts").all()
    expect(cut).to_be_hidden()
    expect(facts).to_contain_text("previous token")
    tokens = attention.locator(".inside-tokens button")
    tokens.nth(3).hover()
    expect(tokens.nth(3)).to_have_class("chosen")
    shares = tokens.evaluate_all("all => all.map(it => parseFloat(it.title))")
    assert sum(shares) == pytest.approx(100, abs=5)
    assert max(shares[4:]) == 0, "no head looks ahead"


def test_own_text_needs_no_answer_and_links_carry_none_of_it(answered: User) -> None:
    lens = panel(answered, "lens", "Logit lens")
    lens.get_by_label("Text from").select_option("text")
    lens.get_by_role("textbox", name="Text").fill("a secret of mine")
    lens.get_by_label("Last positions").fill("3")
    lens.get_by_role("button", name="Inspect").click()
    expect(lens.locator(".inside-map .head")).to_have_count(3)
    expect(answered.page).to_have_url(re.compile("count=3"))
    expect(answered.page).not_to_have_url(re.compile("secret"))


def look(user: User, name: str, text: str) -> Locator:
    """Look at a text of one's own in a panel."""
    opened = panel(user, name, HEADINGS[name][0])
    opened.get_by_label("Text from").select_option("text")
    opened.get_by_role("textbox", name="Text").fill(text)
    opened.get_by_role("button", name="Inspect", exact=True).click()
    return opened


def rows_of(user: User) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(exported(user.page, "Data (JSON)"))
    return rows


def test_a_heat_map_is_read_with_the_arrow_keys(answered: User) -> None:
    lens = look(answered, "lens", "the lazy dog")
    cells = lens.locator(".cell")
    expect(lens.locator(".head")).to_have_text(["the", "␣lazy", "␣dog"])
    expect(cells).to_have_count(3 * 3)
    lens.locator(".inside-map svg").focus()
    answered.page.keyboard.press("ArrowDown")
    expect(lens.locator(".room-facts")).to_contain_text("Layer 0 · after ␣dog")
    answered.page.keyboard.press("ArrowLeft")
    expect(lens.locator(".room-facts")).to_contain_text("Layer 0 · after ␣lazy")
    answered.page.keyboard.press("Enter")
    expect(lens.get_by_role("heading", name="What comes after “␣lazy”")).to_be_visible()
    expect(lens.locator(".inside-map svg")).to_be_focused()


def test_norms_grow_from_layer_to_layer(answered: User) -> None:
    norms = look(answered, "norms", "the quick brown fox")
    chart = norms.get_by_role("img", name="Norms layer by layer: the median of 4 tokens")
    expect(chart).to_be_visible()
    norms.get_by_role("option", name="␣fox").click()
    chart = norms.get_by_role("img", name="Norms layer by layer at “␣fox”")
    chart.focus()
    answered.page.keyboard.press("End")
    expect(norms.locator(".room-facts")).to_have_count(3)
    cut, said, _ = norms.locator(".room-facts").all()
    expect(cut).to_be_hidden()
    expect(said).to_contain_text("Layer 1 · stream")
    last = rows_of(answered)[-1]
    assert (last["layer"], last["token"]) == (1, " fox")
    numbers = [float(number) for number in re.findall(r"[\d.]+", said.inner_text())[1:]]
    assert numbers == pytest.approx([last["stream"], last["attention"], last["mlp"]], rel=0.05)
    norms.get_by_role("button", name="All tokens").click()
    expect(said).to_contain_text("The length of the stream")
    outliers = norms.get_by_role("table", name="Dimensions that stand out").locator("tbody tr")
    where = outliers.first.get_by_role("button")
    label = f"Norms layer by layer at “{where.inner_text()}”"
    where.click()
    expect(norms.get_by_role("img", name=label)).to_be_visible()
    assert b"<svg" in exported(answered.page, "Picture (SVG)")


def test_neurons_lead_to_what_turns_them_off(answered: User) -> None:
    neurons = panel(answered, "neurons", "Neurons")
    neurons.get_by_label("Neurons", exact=True).fill("5")
    neurons.get_by_label("Layer", exact=True).fill("1")
    look(answered, "neurons", "the quick brown fox")
    rows = neurons.locator(".cell")
    expect(rows).to_have_count(5)
    expect(neurons).to_contain_text("fire most at “␣fox”")
    neurons.get_by_role("option", name="␣quick").click()
    expect(neurons).to_contain_text("fire most at “␣quick”")
    expect(answered.page).to_have_url(re.compile("k=5&layer=1"))
    rows.first.focus()
    answered.page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    second = rows_of(answered)[1]
    expect(neurons.get_by_role("heading")).to_have_text(f"Neuron {second['neuron']} of layer 1")
    promoted = neurons.get_by_role("table", name="What the neuron promotes").locator("tbody tr")
    expect(promoted).to_have_count(len(second["promotes"]))
    neurons.get_by_role("button", name="Turn it off in Steering").click()
    steering = answered.page.get_by_role("tabpanel", name="Steering")
    expect(steering.get_by_label("Part")).to_have_value("neuron")
    expect(steering.get_by_label("Number")).to_have_value(str(second["neuron"]))


def fill_prompts(patching: Locator, clean: str, corrupted: str) -> None:
    """Name two prompts, and an answer to each."""
    for name, text, answer in (("First", clean, "cat"), ("Second", corrupted, "dog")):
        pair = patching.get_by_role("group", name=f"{name} prompt")
        pair.get_by_role("textbox").first.fill(text)
        pair.get_by_label("Its answer").fill(answer)
    patching.get_by_role("button", name="Move").click()


def test_patching_finds_where_an_answer_is_decided(answered: User) -> None:
    patching = panel(answered, "patching", "Patching")
    fill_prompts(patching, "the fox jumps", "the dog jumps")
    cells = patching.locator(".cell")
    expect(cells).to_have_count(2 * 3)
    # The two prompts differ in a word: with it all of the answer comes back.
    expect(cells.nth(0).locator("text")).to_have_text("0")
    expect(cells.nth(1).locator("text")).to_have_text("100")
    expect(cells.nth(2).locator("text")).to_have_text("0")
    expect(patching.locator(".room-facts").first).to_contain_text("The lead of “")
    expect(patching.locator(".head.chosen")).to_have_text(["␣fox"])
    patching.locator(".inside-map svg").focus()
    answered.page.keyboard.press("ArrowLeft")
    answered.page.keyboard.press("ArrowDown")
    said = patching.locator(".room-facts").last
    expect(said).to_contain_text("Layer 0 · ␣fox → ␣dog · 100 % of the answer comes back")
    rows = rows_of(answered)
    assert [(row["layer"], row["position"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert rows[0]["effect"] == pytest.approx(1, abs=1e-3)
    assert b"<svg" in exported(answered.page, "Picture (SVG)")


def test_prompts_of_different_lengths_are_shown_as_the_model_reads_them(answered: User) -> None:
    patching = panel(answered, "patching", "Patching")
    fill_prompts(patching, "the fox jumps", "the cat jumps")
    said = patching.get_by_role("alert")
    expect(said).to_contain_text("The first prompt is 3 tokens long, the second 6.")
    expect(patching.locator(".inside-tokens").first).to_have_text("the␣fox␣jumps")
    expect(patching.locator(".cell")).to_have_count(0)
    fill_prompts(patching, "the fox jumps", "the fox jumps")
    expect(said).to_contain_text("The two prompts are the same")
    fill_prompts(patching, "the fox jumps", "the dog jumps")
    expect(said).to_be_hidden()
    expect(patching.locator(".cell")).to_have_count(2 * 3)


def test_a_link_carries_texts_only_where_that_is_chosen(answered: User) -> None:
    patching = panel(answered, "patching", "Patching")
    patching.get_by_label("What is moved").select_option("What the MLP adds")
    fill_prompts(patching, "the fox jumps", "the dog jumps")
    expect(patching.locator(".cell")).to_have_count(2 * 3)
    expect(answered.page).to_have_url(re.compile("site=mlp_out"))
    expect(answered.page).not_to_have_url(re.compile("fox"))
    choice = patching.get_by_label("Include my text in the link")
    choice.check()
    expect(answered.page).to_have_url(re.compile(r"clean=the\+fox\+jumps"))
    expect(answered.page).to_have_url(re.compile("other=dog"))
    choice.uncheck()
    expect(answered.page).not_to_have_url(re.compile("fox"))


def test_a_look_that_waits_can_be_stopped(answered: User) -> None:
    answered.choose(max_tokens="100")
    answered.pause_answers()
    answered.composer.fill("Tell me more")
    answered.composer.press("Enter")
    expect(answered.stop).to_be_visible()
    norms = look(answered, "norms", "the quick brown fox jumps")
    progress = answered.page.locator("#dockProgress")
    expect(progress).to_contain_text("Measuring every layer…")
    progress.get_by_role("button", name="Stop").click()
    expect(progress).to_be_hidden()
    expect(norms.get_by_role("alert")).to_be_hidden()
    answered.let_answers_go_on()
    answered.answered()
    answered.choose(max_tokens="16")


@pytest.mark.thorough  # each of the panels, in both schemes
def test_everybody_reads_them_in_german_too(answered: User) -> None:
    answered.choose_language("de")
    for name, (_, heading) in HEADINGS.items():
        opened = panel(answered, name, heading)
        press = opened.locator("form .primary")
        expect(press).to_have_text("Verschieben" if name == "patching" else "Untersuchen")
        if name == "patching":  # of equally many tokens for the toy, with answers that differ
            opened.get_by_role("textbox", name="Aus diesem Prompt").fill("the fox jumps")
            opened.get_by_role("textbox", name="In diesen Prompt").fill("the dog jumps")
            opened.locator("[name=answer]").fill("cat")
            opened.locator("[name=other]").fill("dog")
        press.click()
        expect(opened.locator(SHOWN.get(name, ".cell")).first).to_be_visible()
        assert_accessible(answered, state=name)
        answered.page.emulate_media(color_scheme="dark")
        assert answered.faults_of_access() == [], f"{name} in the dark"
        answered.page.emulate_media(color_scheme="light")
    answered.choose_language("en")
    assert answered.complaints == []


def name_of(family: str) -> str:
    return family.replace(" ", "-")


@pytest.fixture(scope="module")
def other_mixers(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """Open a page whose models mix tokens by other means than attention to everything."""
    models = tmp_path_factory.mktemp("mixers")
    for family in (*MIXERS, EXPERTS):
        write_toy_model(models, name_of(family), family)
    with serving("--models", str(models)) as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        user.open()
        yield user
        context.close()


@pytest.mark.torch
@pytest.mark.thorough  # tests/glass has them natively
@pytest.mark.parametrize("family", [*MIXERS, EXPERTS])
def test_models_of_each_mixer_can_be_looked_into(other_mixers: User, family: str) -> None:
    other_mixers.page.evaluate("name => inpage.load(name)", name_of(family))
    other_mixers.has_loaded()
    for name, shown in SHOWN.items():
        opened = panel(other_mixers, name, HEADINGS[name][0])
        if name == "attention":  # the first layer that has it
            opened.get_by_label("Layer").fill("")
        look(other_mixers, name, "the lazy dog")
        if (name, family) == ("neurons", EXPERTS):
            expect(opened.get_by_role("alert")).to_contain_text("are experts")
            continue
        expect(opened.locator(shown).first).to_be_visible()
        expect(opened.get_by_role("alert")).to_be_hidden()
        assert rows_of(other_mixers)
    assert other_mixers.complaints == []
