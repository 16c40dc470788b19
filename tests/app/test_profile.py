"""GPU time by op, and which kernels run, as users and the bench ask for it in the page."""

import re

import pytest
from playwright.sync_api import Browser

from py_runtime.gpu.kernel_target import (
    CPU_KERNELS,
    FLOAT_KERNELS,
    HALF_KERNELS,
    MEMORY_KERNELS,
    PORTABLE_KERNELS,
)
from tests.app.conftest import ApiPage
from tests.toy_model import CONTEXT, NAME
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

DECODED = {
    "inpage.qkv_rotary_cache.default",
    "inpage.attend_linear.default",
    "inpage.linear_residual.default",
    "inpage.swiglu.default",
}


def test_a_users_profile_of_a_token(api: ApiPage) -> None:
    found = api.python("await model.profile(100)")
    assert {row["kind"] for row in found["kinds"]} > DECODED
    has_time = found["microseconds"] > 0  # a browser's clock may stand still
    assert sum(row["share"] for row in found["kernels"]) == pytest.approx(float(has_time))
    answer = "return inpage.completions.create({ prompt: 'fox', max_tokens: 3, temperature: 0 })"
    before = api.run(answer)["choices"][0]["text"]
    api.python("await graph.profile([[[1]], [0]], repeats=1), model.session.forget()")
    assert api.run(answer)["choices"][0]["text"] == before


def test_a_position_outside_the_context_is_refused(api: ApiPage) -> None:
    error = api.fails("return inpage.python(given)", f"await model.profile({CONTEXT})")
    assert error["code"] == "context_length_exceeded"


def test_the_benchs_own_question(api: ApiPage) -> None:
    page = (ROOT / "bench" / "pages" / "inpage.js").read_text()
    question = re.search(r"const OPS = `([^`]+)`", page)
    assert question
    ops = api.python(question[1])
    assert {row["op"] for row in ops} > DECODED
    times = [row["ms"] for row in ops]
    assert sum(row["share"] for row in ops) == pytest.approx(float(sum(times) > 0))
    assert times == sorted(times, reverse=True)


def test_the_model_says_which_kernels_it_runs(api: ApiPage) -> None:
    kernels = api.run("return inpage.loaded")["kernels"]
    assert (kernels["name"], kernels["lanes"]) == ("cpu", 1)
    try:
        kernels = api.run(f"return inpage.load('{NAME}', {{ device: 'gpu' }})")["kernels"]
        assert kernels["chosen"] == "features", "a software adapter is not measured"
        assert (kernels["name"], kernels["lanes"], kernels["kv"]) == ("portable", 4, "f32")
    finally:
        api.run(f"await inpage.load('{NAME}')")


ANSWER = "inpage.completions.create({ prompt: 'fox', max_tokens: 3, temperature: 0 })"


# Not those of subgroups, which take a software adapter half a minute to compile.
@pytest.mark.parametrize("name", [PORTABLE_KERNELS, MEMORY_KERNELS, FLOAT_KERNELS, CPU_KERNELS])
def test_kernels_can_be_forced(name: str, api: ApiPage) -> None:
    """The tokens are the same."""
    expected = api.run(f"return (await {ANSWER}).choices[0].text")
    try:
        loaded = api.run(f"return inpage.load('{NAME}', {{ kernels: given }})", name)
        assert (loaded["kernels"]["name"], loaded["kernels"]["chosen"]) == (name, "asked for")
        assert api.run(f"return (await {ANSWER}).choices[0].text") == expected
    finally:
        api.run(f"await inpage.load('{NAME}')")


def test_a_device_that_is_replaced_has_the_same_kernels(api: ApiPage) -> None:
    """The kernels that compile soonest are asked for.

    Whichever they were, they are asked for again.
    """
    try:
        api.run(f"await inpage.load('{NAME}', {{ kernels: 'portable' }})")
        expected = api.run(f"return (await {ANSWER}).choices[0].text")
        api.python("before = device\ndevice.destroy()")
        assert api.run(f"return (await {ANSWER}).choices[0].text") == expected
        kernels = "[device is before, model.kernels.target.kernels, model.kernels.why]"
        assert api.python(kernels) == [False, "portable", "asked for"]
    finally:
        api.run(f"await inpage.load('{NAME}')")


def test_kernels_that_do_not_exist_are_refused(api: ApiPage) -> None:
    for wrong in ("quick", 7, ["memory"], HALF_KERNELS):  # adapters of tests have no halves
        error = api.fails(f"return inpage.load('{NAME}', {{ kernels: given }})", wrong)
        assert (error["code"], error["param"]) == ("invalid_request", "kernels")
    assert api.run("return inpage.loaded.name") == NAME, "what was there stays"


def test_the_pages_address_can_force_them(browser: Browser, toy_site_url: str) -> None:
    page = browser.new_page()
    page.goto(f"{toy_site_url}?kernels=portable")
    api = ApiPage(page)
    kernels = api.run(f"return inpage.load('{NAME}')")["kernels"]
    assert (kernels["name"], kernels["chosen"]) == ("portable", "asked for")
    page.close()
