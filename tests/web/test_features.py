"""Sparse autoencoders that users drop: the panel of features, from the file to steering."""

import io
import json
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Locator, expect

from tests.glass.written_autoencoders import NAME, autoencoder_files, random_tensors
from tests.web.test_engine_room import exported, panel
from tests.web.test_looks import assert_accessible
from tests.web.user import User, until

pytestmark = pytest.mark.browser

FEATURES = 96
TEXT = "the quick brown fox"


@pytest.fixture(scope="module")
def width(user: User) -> int:
    """Return the width of the toy's stream."""
    hooks = user.page.evaluate("inpage.glass('hooks')")
    return int(hooks["hook_embed"][-1])


@pytest.fixture
def dropped(user: User, width: int) -> Locator:
    """Drop an autoencoder on the page, which leads to its panel, and look at a text."""
    user.drop(autoencoder_files("saelens, topk", width, FEATURES))
    expect(user.page.locator("#dockTitle")).to_have_text("Features")
    features = user.page.locator("#panel-features")
    expect(features).to_contain_text("sae · 96 features · TopK 5")
    look_at(features, TEXT)
    return features


def look_at(features: Locator, text: str) -> None:
    features.get_by_label("Text from").select_option("text")
    features.get_by_role("textbox", name="Text").fill(text)
    features.get_by_role("button", name="Inspect", exact=True).click()
    expect(features.get_by_role("table", name="strongest features")).to_be_visible()
    expect(features.locator(".features-table code").first).to_be_visible()


def test_a_dropped_file_shows_its_features(user: User, dropped: Locator) -> None:
    assert user.page.locator("dialog[open]").count() == 0, "it is not taken for a model"
    expect(dropped.get_by_label("Hook")).to_have_value("blocks.1.hook_resid_pre")
    tokens = dropped.locator(".features-tokens button")
    count = len(user.page.evaluate(f"inpage.glass('tokens', {{text: '{TEXT}'}})")["tokens"])
    expect(tokens).to_have_count(count)
    table = dropped.get_by_role("table", name="strongest features")
    expect(table.get_by_role("row")).to_have_count(1 + 5)
    expect(dropped).to_contain_text("5.0 are active at a token")
    expect(dropped).to_contain_text("explain nothing here")
    assert_accessible(user, state="the panel of features")
    rows = json.loads(exported(user.page, "Data (JSON)"))
    assert len(rows) == 5 * count
    assert {row["position"] for row in rows} == set(range(count))
    assert b"<svg" in exported(user.page, "Picture (SVG)")
    assert user.complaints == []


def test_tokens_are_tinted_by_the_feature_that_is_chosen(user: User, dropped: Locator) -> None:
    tokens = dropped.locator(".features-tokens button")
    tokens.first.click()
    expect(tokens.first).to_have_attribute("aria-pressed", "true")
    number = dropped.locator(".features-number").first
    name = number.inner_text()
    number.click()
    expect(dropped.get_by_role("heading", name=f"Feature {name}", exact=True)).to_be_visible()
    expect(dropped.get_by_text("Makes less likely")).to_be_visible()
    tints = tokens.evaluate_all(
        "all => all.map(it => [it.title, it.style.getPropertyValue('--share')])"
    )
    values = [float(title.removeprefix(f"Feature {name}: ")) for title, _ in tints]
    most = max(values[1:])  # the first token's activations are of another size
    for value, (_, share) in zip(values, tints, strict=True):
        assert float(share.removesuffix("%")) == pytest.approx(min(60 * value / most, 60), abs=1)
    expect(user.page).to_have_url(re.compile(f"feature={name}"))
    expect(user.page).to_have_url(re.compile("count=32"))
    expect(user.page).not_to_have_url(re.compile("quick"))
    dropped.locator(".cell").first.click()
    expect(tokens.first).to_have_attribute("aria-pressed", "true")


def test_a_feature_that_is_nowhere_active_can_be_looked_at(dropped: Locator) -> None:
    rows = dropped.page.evaluate(
        f"inpage.glass('features', {{text: '{TEXT}', k: 5}}).then(it => [...it.features.data])"
    )
    silent = next(number for number in range(FEATURES) if number not in rows)
    dropped.get_by_role("spinbutton", name="Feature").fill(str(silent))
    dropped.get_by_role("button", name="Show").click()
    expect(dropped.get_by_role("heading", name=f"Feature {silent}", exact=True)).to_be_visible()
    expect(dropped).to_contain_text("It is not active in this text.")


def test_a_feature_steers_until_it_is_removed(user: User, dropped: Locator) -> None:
    plain = user.text_of(user.ask("Tell me more"))
    dropped.get_by_role("button", name="Steer with this feature").click()
    slider = dropped.get_by_role("slider", name="Strength of feature")
    expect(slider).to_be_visible()
    strength = user.page.evaluate("inpage.glass('autoencoder').then(it => it.steered[0].strength)")
    until(
        user.page,
        lambda: float(slider.input_value()) == pytest.approx(strength),
        "the slider stands at its strength",
    )
    assert_accessible(user, state="a feature that steers")
    slider.focus()
    user.page.keyboard.press("End")
    user.page.wait_for_function(
        """before => inpage.glass('autoencoder').then(
            it => it.steered[0].strength > 2 * before)""",
        arg=strength,
    )
    assert user.text_of(user.regenerate()) != plain
    dropped.get_by_role("button", name="Remove feature").click()
    expect(slider).to_be_hidden()
    assert user.text_of(user.regenerate()) == plain
    assert user.complaints == []


def test_a_file_that_names_no_hook_asks_for_it(user: User, width: int) -> None:
    features = panel(user, "features", "Features")
    files: list[FilePayload] = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": data}
        for name, data in autoencoder_files("eleuther", width, FEATURES).items()
    ]
    features.locator("input[type=file]").set_input_files(files)
    hook = features.get_by_label("Hook")
    expect(hook).to_have_value("")
    expect(features.get_by_role("button", name="Inspect", exact=True)).to_be_hidden()
    hook.select_option("blocks.0.hook_resid_post")
    look_at(features, TEXT)
    features.get_by_role("button", name="Close").click()
    expect(features.get_by_role("button", name="Open a sparse autoencoder")).to_be_visible()


def compressed(width: int) -> bytes:
    file = io.BytesIO()
    tensors: dict[str, Any] = dict(random_tensors("gemma scope", width, FEATURES))
    np.savez_compressed(file, **tensors)
    return file.getvalue()


def test_a_file_that_does_not_suit_says_why(user: User, width: int) -> None:
    features = panel(user, "features", "Features")
    faults = {
        "reads activations of width 7": autoencoder_files("saelens", 7, FEATURES),
        "give both files together": {NAME: autoencoder_files("eleuther", width, FEATURES)[NAME]},
        "is compressed: save the file again with numpy.savez": {"params.npz": compressed(width)},
    }
    for said, files in faults.items():
        user.drop(files)
        expect(features.get_by_role("alert")).to_contain_text(said)
    expect(features.get_by_role("button", name="Open a sparse autoencoder")).to_be_visible()
