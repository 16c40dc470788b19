"""Damaged files of chats and damaged settings: the page takes or refuses them; nothing is lost."""

import json
import re
from random import Random
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.fuzz.documents import lied
from tests.web.user import User

pytestmark = pytest.mark.browser

SEED = 1
IMPORTS, SETTINGS = 60, 12
MESSAGES = [
    {"role": "user", "content": "Hi", "note": "", "error": ""},
    {"role": "assistant", "content": "**Hello** <b>you</b>", "note": "2 tokens", "error": ""},
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
    return lied(rng, json.dumps(rng.choice(documents)).encode())


def count_of_chats(user: User) -> int:
    return user.page.locator("#chats .open").count()


def test_damaged_files_of_chats(fresh: User) -> None:
    fresh.import_text(json.dumps({**EXPORTS[0], "chats": [{**CHAT, "title": "Kept"}]}))
    expect(fresh.notices).to_contain_text("imported from chats.json")
    expected, refused = count_of_chats(fresh), 0
    for number in range(IMPORTS):
        fresh.dismiss_notices()
        name = f"{number}.json"
        file = {"name": name, "mimeType": "", "buffer": damaged(number, EXPORTS)}
        fresh.page.locator("#importFile").set_input_files(file)  # type: ignore[arg-type]
        expect(fresh.notices).to_contain_text(name)
        said = fresh.notices.inner_text()
        taken = re.search(rf"(\d+) chats? imported from {name}", said)
        assert taken or f"{name} was not imported: " in said, f"number {number}: {said}"
        expected += int(taken[1]) if taken else 0
        refused += not taken
        assert fresh.complaints == [], f"number {number}"
    assert 0 < refused < IMPORTS
    expect(fresh.page.locator("#chats .open")).to_have_count(expected)
    fresh.page.reload()
    fresh.has_opened()
    expect(fresh.page.locator("#chats .open")).to_have_count(expected)
    expect(fresh.page.locator("#chats .open", has_text="Kept")).to_have_count(1)
    assert fresh.complaints == []


def test_damaged_settings(fresh: User) -> None:
    for number in range(SETTINGS):
        text = damaged(number, KEPT_SETTINGS).decode(errors="replace")
        fresh.page.evaluate("text => { localStorage.inpageSettings = text; }", text)
        fresh.page.reload()
        fresh.has_opened()
        assert fresh.complaints == [], f"number {number}: {text[:200]}"
        assert fresh.page.evaluate("document.querySelector('#settingsForm').checkValidity()")
    fresh.choose(temperature="0.25")
    fresh.page.reload()
    fresh.has_opened()
    expect(fresh.page.locator("#settings [name=temperature]")).to_have_value("0.25")
