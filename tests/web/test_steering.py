"""The panel of steering: vectors that are built and moved, and parts that are turned off."""

import pytest
from playwright.sync_api import Locator, expect

from tests.web.test_looks import assert_accessible
from tests.web.user import User

pytestmark = pytest.mark.browser


def panel_of(user: User) -> Locator:
    """Open the panel, if need be, and return it."""
    panel = user.page.get_by_role("tabpanel", name="Steering")
    if not panel.is_visible():
        user.page.get_by_role("button", name="Look inside").click()
        user.page.get_by_role("tab", name="Steering").click()
    expect(panel.get_by_role("heading", name="Vectors")).to_be_visible()
    return panel


def test_a_vector_is_built_and_moved(user: User) -> None:
    plain = user.text_of(user.ask("Tell me more"))
    panel = panel_of(user)
    assert_accessible(user, state="the panel of steering")
    panel.get_by_text("New vector").click()
    panel.get_by_label("Name").fill("merry")
    panel.get_by_label("More like these").fill("a good day\nall is well")
    panel.get_by_label("Less like these").fill("a bad day\nnothing is well")
    panel.get_by_label("Layer").first.fill("1")
    panel.get_by_role("button", name="Build vector").click()
    slider = panel.get_by_role("slider", name="Strength of merry")
    expect(slider).to_have_value("1")
    slider.focus()
    user.page.keyboard.press("End")
    expect(slider).to_have_value("4")
    assert_accessible(user, state="a vector")
    user.page.wait_for_function(
        "async () => (await inpage.glass('steering')).vectors[0].strength === 4"
    )
    assert user.text_of(user.regenerate()) != plain
    with user.page.expect_download() as download:
        panel.get_by_role("button", name="Save merry as a file").click()
    file = download.value.path()
    panel.get_by_role("button", name="Remove merry").click()
    expect(slider).to_be_hidden()
    assert user.text_of(user.regenerate()) == plain
    panel.locator("input[type=file]").set_input_files(file)
    expect(slider).to_have_value("4")
    panel.get_by_role("button", name="Remove merry").click()
    expect(slider).to_be_hidden()
    assert user.complaints == []


def test_strengths_count_while_an_answer_is_written(user: User) -> None:
    panel_of(user)
    found = user.page.evaluate("""async () => {
        await inpage.glass("steering_vector", {
            name: "live", positive: ["a good day"], negative: ["a bad day"], layer: 1, strength: 0,
        });
        const ask = async (then) => {
            const tokens = [];
            const request = {messages: [{role: "user", content: "Go on"}], temperature: 0};
            const chunks = inpage.chat.completions.create(
                {...request, max_tokens: 400, stream: true});
            for await (const chunk of chunks) {
                tokens.push(...chunk.choices[0]?.token_ids ?? []);
                if (tokens.length) await then?.();
                then = undefined;
            }
            return tokens;
        };
        const plain = await ask();
        const steered = await ask(() => inpage.glass("strength", {which: "live", strength: 50}));
        await inpage.glass("steering", {remove: ["live"]});
        return {plain, steered};
    }""")
    assert found["steered"][0] == found["plain"][0]
    assert found["steered"] != found["plain"]


def test_a_part_is_turned_off_and_asked_again(user: User) -> None:
    panel = panel_of(user)
    panel.get_by_label("Part").select_option("Attention head")
    panel.get_by_label("Number").fill("1")
    panel.get_by_label("Question").fill("Who are you?")
    panel.get_by_role("button", name="Ask with and without it").click()
    answers = panel.locator(".steer-answers section")
    expect(answers).to_have_count(2)
    expect(answers.nth(1)).to_contain_text("Without head 1 of layer 0")
    expect(answers.nth(1).locator("p")).not_to_be_empty()
    expect(user.page.locator("#dockProgress")).to_be_hidden()
    assert not user.page.evaluate("inpage.glass('steering')")["off"]
    assert answers.nth(0).locator("p").inner_text() != answers.nth(1).locator("p").inner_text()
    panel.get_by_role("button", name="Turn off", exact=True).click()
    off = panel.get_by_role("button", name="Turn head 1 of layer 0 on again")
    off.click()
    expect(off).to_be_hidden()
    assert user.complaints == []


def test_any_hook_is_changed(user: User) -> None:
    panel = panel_of(user)
    plain = user.text_of(user.ask("And this?"))
    panel.get_by_text("Change any hook").click()
    panel.get_by_label("Hook").fill("blocks.0.mlp.hook_post")
    panel.get_by_label("Strength", exact=True).fill("-5")
    panel.get_by_role("button", name="Apply").click()
    gone = panel.get_by_role("button", name="Remove blocks.0.mlp.hook_post scale")
    expect(gone).to_be_visible()
    assert_accessible(user, state="a hook that is changed")
    assert user.text_of(user.regenerate()) != plain
    gone.click()
    expect(gone).to_be_hidden()
    assert user.text_of(user.regenerate()) == plain


def test_a_link_leads_to_a_part(user: User) -> None:
    user.page.goto("about:blank")
    user.page.goto(f"{user.url}#panel=steering&part=head&layer=1&number=2")
    user.has_loaded()
    panel = panel_of(user)
    expect(panel.get_by_label("Number")).to_have_value("2")
    expect(panel.get_by_role("spinbutton", name="Layer").last).to_have_value("1")
