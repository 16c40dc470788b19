"""GPU time by op, and which kernels run, as users and the bench ask for it in the page."""

import re

import pytest

from tests.app.conftest import ApiPage
from tests.toy_model import CONTEXT
from tools.files import ROOT

pytestmark = pytest.mark.browser

DECODED = {
    "inpage.qkv_rotary_cache.default",
    "inpage.attend_kv_cache.default",
    "inpage.linear_residual.default",
    "inpage.swiglu.default",
}


def test_a_users_profile_of_a_token(api: ApiPage) -> None:
    found = api.python("await model.profile(100)")
    assert {row["kind"] for row in found["kinds"]} > DECODED
    assert sum(row["share"] for row in found["kernels"]) == pytest.approx(1)
    assert found["microseconds"] > 0
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
    assert sum(row["share"] for row in ops) == pytest.approx(1)
    times = [row["ms"] for row in ops]
    assert times == sorted(times, reverse=True)


def test_the_model_says_which_kernels_it_runs(api: ApiPage) -> None:
    kernels = api.run("return inpage.loaded")["kernels"]
    assert kernels["chosen"] == "features", "a software adapter is not measured"
    assert (kernels["name"], kernels["lanes"], kernels["f16_kv"]) == ("portable", 4, False)
