"""Adapters that users drop on the page, and samplers that they choose."""

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from py_runtime.folder.plain_safetensors import write_safetensors
from tests.adapters.written import peft_config, peft_tensors, random_factors
from tests.web.test_looks import assert_accessible
from tests.web.user import User

pytestmark = pytest.mark.browser

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LINEARS = """
from py_runtime.passes.add_low_rank import linears_of
{name: list(dims) for name, dims in linears_of(model.folder.program).items()}
"""
OWN_SAMPLER = """
from inpage import register_sampler

@register_sampler("only_seven", about="Always takes token 7.", strength=(1.0, 0.0, 2.0))
def only_seven(drawing, strength):
    return lambda scores, tokens: np.where(np.arange(len(scores)) == 7, 0.0, -np.inf)
"""


def adapter_files(user: User, **config: object) -> dict[str, bytes]:
    """Return an adapter that fits the page's model and changes what it says."""
    shapes = user.page.evaluate("code => inpage.python(code)", LINEARS)
    linears = {
        name: (dims[0], dims[1])
        for name, dims in shapes.items()
        if name.endswith(("q_proj", "v_proj", "down_proj"))
    }
    tensors = peft_tensors(random_factors(linears, 4, 1))
    return {
        CONFIG: json.dumps(peft_config(4, 16, **config)).encode(),
        WEIGHTS: write_safetensors(tensors),
    }


def drop(user: User, files: dict[str, bytes]) -> Locator:
    """Drop the files, and return what the page says of them."""
    user.drop(files)
    told = user.page.locator("#about")
    expect(told).not_to_have_text(re.compile("^Reading|^$"))
    return told


def test_an_adapter_is_dropped_and_its_strength_changed(user: User) -> None:
    plain = user.text_of(user.ask("Tell me more"))
    expect(drop(user, adapter_files(user))).to_contain_text("adapter is applied.")
    user.page.keyboard.press("Escape")
    chip = user.page.get_by_role("group", name="Adapters of the model")
    slider = chip.get_by_role("slider", name="Strength of adapter")
    expect(slider).to_have_value("1")
    assert_accessible(user, state="an adapter")
    adapted = user.text_of(user.regenerate())
    assert adapted != plain
    slider.focus()
    for _ in range(20):
        user.page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("0")
    user.page.wait_for_function("() => inpage.loaded.adapters[0].strength === 0")
    assert user.text_of(user.regenerate()) == plain
    user.page.evaluate("inpage.adapters.setStrength('adapter', 1)")
    expect(slider).to_have_value("1")
    assert user.text_of(user.regenerate()) == adapted
    user.page.evaluate("inpage.restart()")
    expect(slider).to_have_value("1")
    user.talk_on()
    assert user.text_of(user.regenerate()) == adapted
    chip.get_by_role("button", name="Remove adapter").click()
    expect(chip).to_be_hidden()
    assert user.text_of(user.regenerate()) == plain
    assert user.complaints == []


def test_what_does_not_fit_is_said(user: User) -> None:
    files = adapter_files(user)
    wrong = random_factors({"layers.0.self_attn.q_proj": (8, 8)}, 4, 1)
    told = drop(user, {**files, WEIGHTS: write_safetensors(peft_tensors(wrong))})
    expect(told).to_contain_text("the weight of layers.0.self_attn.q_proj is")
    user.page.keyboard.press("Escape")
    told = drop(user, adapter_files(user, use_dora=True))
    expect(told).to_contain_text("use_dora = True, which this engine cannot apply")
    user.page.keyboard.press("Escape")
    expect(user.page.get_by_role("group", name="Adapters of the model")).to_be_hidden()


def test_addresses_of_elsewhere_are_not_asked(user: User) -> None:
    user.requests.clear()
    for where in (
        "https://elsewhere.example/own",
        "//elsewhere.example/own",
        "http://localhost:1/own",
        f"{user.url.replace('://', '://a@')}own",
        "data:application/json,{}",
    ):
        load = "where => inpage.adapters.load(where).then(() => '', ({message}) => message)"
        assert "adapters come from this one" in user.page.evaluate(load, where), where
    assert [each for each in user.requests if "own" in each or "data:" in each] == []


def test_samplers_are_chosen_in_the_settings(user: User) -> None:
    user.page.evaluate("code => inpage.python(code)", OWN_SAMPLER)
    user.page.locator("header [data-opens=settings]").click()
    user.page.get_by_text("Advanced", exact=True).click()
    sampler = user.page.get_by_label("Further sampling")
    expect(sampler.get_by_role("option")).to_have_count(7)
    sampler.select_option("DRY")
    user.page.get_by_label("multiplier").fill("2")
    assert_accessible(user, state="a sampler's settings")
    user.page.get_by_role("button", name="Done").click()
    user.ask("Say it again")
    asked = (
        "async () => (await import(new URL('ui/settings/settings.js', document.baseURI)))"
        ".requestOptions()"
    )
    assert user.page.evaluate(asked)["sampler"] == {"name": "dry", "multiplier": 2}
    user.page.locator("header [data-opens=settings]").click()
    sampler.select_option("only_seven")
    expect(user.page.locator("#samplerAbout")).to_contain_text("Always takes token 7.")
    user.page.get_by_role("button", name="Done").click()
    answer = user.ask("And now?")
    words = user.text_of(answer)
    token = user.page.evaluate("inpage.python('model.tokenizer.decode([7] * 16)')")
    assert words.strip() == token.strip()
    user.page.locator("header [data-opens=settings]").click()
    sampler.select_option("None")
    user.page.get_by_role("button", name="Done").click()
    assert "sampler" not in user.page.evaluate(asked)
    assert user.complaints == []
