"""Damaged files of chats and damaged settings: the page takes or refuses them; nothing is lost."""

import json
import re
from random import Random
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.fuzz.documents import make_lie
from tests.web.user import Desk

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

SEED = 1
IMPORTS, SETTINGS = 40, 8
MESSAGES = [
    {"role": "user", "content": "Hi", "note": "", "error": ""},
    {"role": "assistant", "content": "**Hello** <b>you</b>", "note": "2 tokens", "error": ""},
    {
        "role": "assistant",
        "content": "Well",
        "note": [{"code": "answer_tokens", "facts": {"tokens": 2}}],
        "error": "too long",
        "reason": "prompt_too_long",
        "facts": {"prompt_tokens": 5, "context": 3},
    },
]
CHAT = {"id": "1", "title": "A chat", "system": "Be brief.", "changed": 1, "messages": MESSAGES}
EXPORTS: list[Any] = [
    {"format": "inpage-chats", "version": 1, "chats": [CHAT, {**CHAT, "title": "Another"}]},
    {"format": "inpage-chats", "version": 1, "chats": [{"messages": MESSAGES[:1]}]},
]
CHOSEN = [["temperature", "0.5"], ["max_tokens", "16"], ["theme", "dark"]]
KEPT_SETTINGS: list[Any] = [CHOSEN, {"version": 1, "chosen": CHOSEN}]


def damaged(number: int, documents: list[Any]) -> bytes:
    rng = Random(f"{SEED} {number}")
    return make_lie(rng, json.dumps(rng.choice(documents)).encode())


def test_damaged_files_of_chats(desk: Desk) -> None:
    user = desk.tab()
    user.import_text(json.dumps({**EXPORTS[0], "chats": [{**CHAT, "title": "Kept"}]}))
    expect(user.notices).to_contain_text("imported from chats.json")
    expected, refused = user.titles.count(), 0
    for number in range(IMPORTS):
        user.dismiss_notices()
        name = f"{number}.json"
        file = {"name": name, "mimeType": "", "buffer": damaged(number, EXPORTS)}
        user.page.locator("#importFile").set_input_files(file)  # type: ignore[arg-type]
        expect(user.notices).to_contain_text(name)
        said = user.notices.inner_text()
        taken = re.search(rf"(\d+) chats? imported from {name}", said)
        assert taken or f"{name} was not imported: " in said, f"number {number}: {said}"
        expected += int(taken[1]) if taken else 0
        refused += not taken
        assert user.complaints == [], f"number {number}"
    assert 0 < refused < IMPORTS
    expect(user.titles).to_have_count(expected)
    user.page.reload()
    desk.ready(user)
    expect(user.titles).to_have_count(expected)
    expect(user.titles.filter(has_text="Kept")).to_have_count(1)
    assert user.complaints == []


def test_damaged_settings(desk: Desk) -> None:
    user = desk.tab()
    for number in range(SETTINGS):
        text = damaged(number, KEPT_SETTINGS).decode(errors="replace")
        user.page.evaluate("text => { localStorage.inpageSettings = text; }", text)
        user.page.reload()
        desk.ready(user)
        assert user.complaints == [], f"number {number}: {text[:200]}"
        assert user.page.evaluate("document.querySelector('#settingsForm').checkValidity()")
    user.choose(temperature="0.25")
    user.page.reload()
    desk.ready(user)
    expect(user.page.locator("#settings [name=temperature]")).to_have_value("0.25")
