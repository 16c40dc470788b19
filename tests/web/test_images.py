"""A model that sees, in the page: its two files are dropped, then images go with questions."""

import base64
import io
import re
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.vision import small_models
from tests.web.test_files import attached, files_of
from tests.web.user import User, until

pytestmark = [pytest.mark.browser, pytest.mark.torch]

SIZE = (70, 40)
ADDRESS = "data:image/png;base64,"


def png(size: tuple[int, int] = SIZE) -> bytes:
    rng = np.random.default_rng(0)
    stream = io.BytesIO()
    pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def model_files() -> dict[str, bytes]:
    model = small_models.make_model()
    files = {
        "seeing.gguf": small_models.model_file(model),
        "mmproj-seeing.gguf": small_models.projector_file(model),
    }
    return {name: data.tobytes() for name, data in files.items()}


def test_a_phone_takes_a_photo(browser: Browser, toy_site_url: str) -> None:
    context = browser.new_context(
        viewport={"width": 412, "height": 839}, has_touch=True, is_mobile=True
    )
    user = User(context.new_page(), toy_site_url)
    user.open()
    camera = user.page.get_by_role("button", name="Take a photo")
    expect(camera).to_be_hidden()
    user.drop(model_files())
    expect(camera).to_be_visible()
    with user.page.expect_file_chooser() as chosen:
        camera.click()
    assert chosen.value.element.get_attribute("capture") == "environment"
    chosen.value.set_files({"name": "photo.png", "mimeType": "image/png", "buffer": png()})
    expect(attached(user).get_by_role("img", name="photo.png")).to_be_visible()
    assert user.complaints == []
    context.close()


@pytest.fixture
def user(browser: Browser, toy_site_url: str) -> Iterator[User]:
    context = browser.new_context()
    user = User(context.new_page(), toy_site_url)
    user.open()
    yield user
    assert user.complaints == []
    context.close()


def test_an_image_goes_with_a_question(user: User) -> None:
    page = user.page
    user.load()
    user.drop({"a.png": png()})
    expect(user.notices).to_contain_text("cannot see images")
    expect(page.get_by_role("button", name="Take a photo")).to_be_hidden()
    user.drop(model_files())
    user.notices.get_by_role("button", name="Details").click()
    expect(page.get_by_role("dialog", name="Your file")).to_contain_text("show it images")
    page.keyboard.press("Escape")
    user.drop({"a.png": png()})
    chip = attached(user)
    expect(chip.get_by_role("img", name="a.png")).to_be_visible()
    expect(chip).to_contain_text(re.compile(r"\b1\d\d tokens"))
    user.choose(max_tokens="4")
    user.ask("What is it?")
    shown = files_of(user.questions.last)
    expect(shown.get_by_role("img", name="a.png")).to_be_visible()
    shown.get_by_role("button").click()
    expect(page.get_by_role("dialog").get_by_role("img", name="a.png")).to_be_visible()
    page.keyboard.press("Escape")
    until(page, lambda: "answer_tokens" in str(user.records()), "the answer is kept")
    kept = [each for record in user.records() for each in record["messages"]]
    assert kept[-1]["role"] == "assistant"
    assert not kept[-1]["error"], "it was answered"
    assert user.kept_files() == [ADDRESS + base64.b64encode(png()).decode()]
