"""The call `glass` in the page: views as a script asks for them, and steering."""

from typing import Any

import pytest

from tests.app.conftest import ApiPage

TEXT = "the quick brown fox jumps"
ASKED = {"prompt": TEXT, "max_tokens": 6, "temperature": 0, "ignore_eos": True}


def answer(api: ApiPage) -> str:
    body = "return (await inpage.completions.create(given)).choices[0].text"
    text: str = api.run(body, ASKED)
    return text


def test_a_text_is_scored_and_told_how_far(api: ApiPage) -> None:
    scored, steps = api.run(
        """const steps = [];
        const given_fields = { text: given, k: 3, settings: { temperature: 0 } };
        const onProgress = (step) => steps.push(step);
        const scored = await inpage.glass("score", given_fields, { onProgress });
        return [scored, steps]""",
        TEXT,
    )
    first, *others = scored["tokens"]
    assert first["logprob"] is None
    for each in others:
        assert each["logprob"] <= 0
        assert len(each["best"]) == 3
        assert [best["is_cut"] for best in each["best"]] == [False, True, True]
    assert scored["next"]["token"] is None
    assert "".join(each["text"] for each in scored["tokens"]).endswith(TEXT)
    assert steps[-1]["done"] == steps[-1]["total"]


def test_arrays_come_as_typed_arrays(api: ApiPage) -> None:
    found = api.run(
        """const { top, prob, layers, top_texts } = await inpage.glass("lens", { text: given });
        const sum = prob.data.reduce((all, each) => all + each, 0);
        return { kinds: [top.data.constructor.name, prob.data.constructor.name], shape: prob.shape,
          sum, layers, texts: top_texts.length }""",
        TEXT,
    )
    assert found["kinds"] == ["Int32Array", "Float32Array"]
    assert found["shape"][0] == len(found["layers"]) == found["texts"]
    assert 0 < found["sum"] <= found["shape"][0] * found["shape"][1]


def test_every_view_answers(api: ApiPage) -> None:
    views: list[tuple[str, dict[str, Any]]] = [
        ("tokens", {}),
        ("cache", {"names": "blocks.*.hook_resid_post", "logits": True}),
        ("attention", {}),
        ("norms", {}),
        ("neurons", {"k": 3}),
    ]
    for view, fields in views:
        body = "return Object.keys(await inpage.glass(given[0], given[1]))"
        assert "tokens" in api.run(body, [view, fields | {"text": TEXT}])
    names = api.run("return Object.keys(await inpage.glass('hooks'))")
    assert "blocks.0.hook_resid_post" in names
    fields = {"clean": [5, 6, 7, 8], "corrupted": [5, 9, 7, 8], "answers": [5, 6]}
    body = "return (await inpage.glass('patch', given)).effects.resid_pre.shape"
    assert api.run(body, fields) == [2, 4]
    for change, param in (({"answers": [5]}, "answers"), ({"corrupted": [5]}, "corrupted")):
        error = api.fails("await inpage.glass('patch', given)", fields | change)
        assert error["param"] == param


def test_a_steered_model_writes_otherwise_until_it_is_cleared(api: ApiPage) -> None:
    before = answer(api)
    edit = {"hook": "blocks.1.hook_mlp_out", "kind": "scale", "strength": -9, "name": "mood"}
    (told,) = api.run("return inpage.glass('steer', { edits: [given] })", edit)
    assert (told["name"], told["strength"]) == ("mood", -9)
    assert answer(api) != before
    api.run("await inpage.glass('strength', { which: 'mood', strength: 1 })")
    assert answer(api) == before
    assert api.run("return inpage.glass('steer', { edits: [] })") == []
    assert answer(api) == before


@pytest.mark.parametrize(
    ("view", "fields", "param"),
    [
        ("lense", {}, "view"),
        ("score", {}, "tokens"),
        ("score", {"text": TEXT, "kk": 1}, "kk"),
        ("cache", {"text": TEXT, "names": "blocks.9.hook_resid_post"}, "names"),
        ("steer", {"edits": [{"hook": "hook_embed", "vector": [1, 2]}]}, "edits"),
        ("strength", {"which": "nothing", "strength": 1}, "name"),
    ],
)
def test_what_is_wrong_is_named(api: ApiPage, view: str, fields: Any, param: str) -> None:
    error = api.fails("await inpage.glass(given[0], given[1])", [view, fields])
    assert (error["code"], error["param"]) == ("invalid_request", param)
