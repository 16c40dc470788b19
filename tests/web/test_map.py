"""The map: chats, and lines of a file, in two dimensions, as a user meets it in the dock."""

import itertools
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.test_engine_room import exported
from tests.web.test_looks import assert_accessible
from tests.web.user import User, chat_of, until

pytestmark = pytest.mark.browser

FILE = """The cat sleeps.
A cat purrs.

Rates rise again.
The cat sleeps.
"""
MANY = "\n".join(f"line {number}" for number in range(1500)).encode()


def opened(user: User) -> Locator:
    """Open the panel as users do, if need be, and return it."""
    panel = user.page.get_by_role("tabpanel", name="Map")
    if not panel.is_visible():
        user.page.get_by_role("button", name="Look inside").click()
        user.page.get_by_role("tab", name="Map").click()
    expect(panel.get_by_label("Map of")).to_be_visible()
    return panel


def spots_of(panel: Locator) -> Locator:
    return panel.get_by_role("listbox", name="Texts as points").get_by_role("option")


def choose_file(panel: Locator, name: str, data: bytes) -> None:
    panel.get_by_label("Map of").select_option("file")
    file: Any = {"name": name, "mimeType": "text/plain", "buffer": data}
    panel.get_by_label("File", exact=True).set_input_files(file)


@pytest.fixture(scope="module")
def with_chats(user: User) -> User:
    """Import two chats, the second of which is open."""
    user.import_chats(
        chat_of("Do cats purr?", "They do."), chat_of("Will rates rise?", "They may.")
    )
    expect(user.titles).to_have_count(2)
    user.dismiss_notices()
    return user


def test_two_chats_on_the_map_and_a_click_opens_one(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    assert_accessible(user, state="the map before it is drawn")
    panel.get_by_role("button", name="Draw the map").click()
    spots = spots_of(panel)
    expect(spots).to_have_count(2)
    expect(panel.locator(".room-facts:visible").last).to_contain_text("2 chats · Toy")
    current = user.page.locator('#chats .open[aria-current="true"]')
    for title in ("Do cats purr?", "Will rates rise?"):
        spot = panel.get_by_role("option", name=title)
        spot.hover()
        expect(panel.locator(".map-told")).to_contain_text(title)
        spot.click()
        expect(current).to_have_text(title)
    assert user.complaints == []


TAP = """spot => {
    const {x, y, width, height} = spot.getBoundingClientRect();
    const place = {clientX: x + width / 2, clientY: y + height / 2, bubbles: true};
    for (const type of ["pointerdown", "pointerup", "click"])
        spot.dispatchEvent(new PointerEvent(type, {...place, pointerType: "touch"}));
}"""


def test_a_finger_reads_first_and_then_opens(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    current = user.page.locator('#chats .open[aria-current="true"]')
    expect(current).to_have_text("Will rates rise?")
    spot = panel.get_by_role("option", name="Do cats purr?")
    spot.evaluate(TAP)
    expect(panel.locator(".map-told")).to_contain_text("They do.")
    expect(current).to_have_text("Will rates rise?")
    spot.evaluate(TAP)
    expect(current).to_have_text("Do cats purr?")


def test_messages_have_points_and_colours_of_their_writers(with_chats: User) -> None:
    panel = opened(with_chats)
    panel.get_by_label("Map of").select_option("messages")
    panel.get_by_role("button", name="Draw the map").click()
    expect(spots_of(panel)).to_have_count(4)
    panel.get_by_label("Colour").select_option("role")
    legend = panel.locator(".map-legend")
    expect(legend.get_by_role("button", name="You")).to_contain_text("2")
    legend.get_by_role("button", name="Answer").click()
    expect(panel.locator(".spot.dim")).to_have_count(2)
    expect(panel.locator(".map-told")).to_contain_text("2 texts are highlighted")
    legend.get_by_role("button", name="Answer").click()
    expect(panel.locator(".spot.dim")).to_have_count(0)


def test_lines_of_a_file(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    choose_file(panel, "notes.txt", FILE.encode())
    spots = spots_of(panel)
    expect(panel.locator(".room-facts:visible").last).to_contain_text("4 lines · Toy")
    expect(spots).to_have_count(4)
    placed = [spots.nth(at).get_attribute("transform") for at in range(4)]
    assert placed[0] == placed[3], "the same text twice"
    assert len(set(placed)) == 3
    panel.get_by_label("Search").fill("cat")
    expect(panel.locator(".spot.dim")).to_have_count(1)
    panel.get_by_label("Search").fill("")
    assert_accessible(user, state="a map")
    expect(user.page).to_have_url(re.compile("source=file"))
    expect(user.page).not_to_have_url(re.compile("cat"))
    rows = json.loads(exported(user.page, "Data (JSON)"))
    assert [(row["line"], row["text"]) for row in rows] == [
        (1, "The cat sleeps."),
        (2, "A cat purrs."),
        (4, "Rates rise again."),
        (5, "The cat sleeps."),
    ]
    assert all(isinstance(row["neighbours_x"], float | int) for row in rows)
    assert b"<path" in exported(user.page, "Picture (SVG)")


def test_keys_lead_from_text_to_text_and_zoom(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    choose_file(panel, "notes.md", b"one\ntwo\nthree")
    spots = spots_of(panel)
    expect(spots).to_have_count(3)
    plane = panel.get_by_role("listbox", name="Texts as points")
    plane.focus()
    user.page.keyboard.press("Home")
    expect(panel.locator(".map-told")).to_contain_text("Line 1")
    user.page.keyboard.press("End")
    expect(panel.locator(".map-told")).to_contain_text("Line 3")
    chosen = plane.get_by_role("option", selected=True)
    expect(chosen).to_have_count(1)
    before = spots.nth(0).get_attribute("transform")
    user.page.keyboard.press("+")
    expect(spots.nth(0)).not_to_have_attribute("transform", before or "")
    user.page.keyboard.press("0")
    expect(spots.nth(0)).to_have_attribute("transform", before or "")
    box = plane.bounding_box()
    assert box
    user.page.mouse.move(box["x"] + 20, box["y"] + 20)
    user.page.mouse.down()
    user.page.mouse.move(box["x"] + 60, box["y"] + 50, steps=4)
    user.page.mouse.up()
    expect(spots.nth(0)).not_to_have_attribute("transform", before or "")


def test_lines_that_are_written_in_another_layout(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    panel.get_by_label("Map of").select_option("own")
    panel.get_by_role("button", name="Draw the map").click()
    expect(panel.get_by_role("alert")).to_have_text("Write some lines first.")
    lines = "\n".join(f"{word} {number}" for word in ("cat", "rate") for number in range(5))
    panel.get_by_label("Lines", exact=True).fill(lines)
    panel.get_by_role("button", name="Draw the map").click()
    spots = spots_of(panel)
    expect(spots).to_have_count(10)
    before = spots.nth(0).get_attribute("transform")
    panel.get_by_label("Places").select_option("principal")
    expect(spots.nth(0)).not_to_have_attribute("transform", before or "")
    facts = panel.locator(".room-facts:visible").last
    expect(facts).to_contain_text(re.compile(r"these two directions hold \d+ %"))
    expect(user.page).to_have_url(re.compile("layout=principal"))
    panel.get_by_label("Places").select_option("neighbours")


def test_a_file_dropped_on_the_panel_is_mapped_and_not_attached(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    panel.evaluate("""panel => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["one\\n", "two\\n"], "dropped.csv"));
        const options = {dataTransfer: transfer, bubbles: true, cancelable: true};
        panel.dispatchEvent(new DragEvent("drop", options));
    }""")
    expect(panel.locator(".room-facts:visible").last).to_contain_text("2 lines")
    expect(user.page.locator("#attached li")).to_have_count(0)


def test_it_can_be_stopped(with_chats: User) -> None:
    user = with_chats
    panel = opened(user)
    before = spots_of(panel).count()
    choose_file(panel, "many.txt", MANY)
    progress = user.page.locator("#dockProgress")
    expect(progress).to_contain_text("Reading 1,500 texts")
    until(user.page, lambda: progress.locator("progress").get_attribute("value"), "progress")
    progress.get_by_role("button", name="Stop").click()
    expect(progress).to_be_hidden()
    expect(spots_of(panel)).to_have_count(before)
    expect(panel.locator(".error")).to_be_empty()
    assert user.text_of(user.ask("Go on")), "the model is free"


def test_what_is_no_text_is_told(with_chats: User) -> None:
    panel = opened(with_chats)
    choose_file(panel, "picture.txt", b"\xff\xd8\xff\xe0")
    expect(panel.get_by_role("alert")).to_contain_text("picture.txt is not UTF-8 text")
    choose_file(panel, "empty.txt", b"\n \n")
    expect(panel.get_by_role("alert")).to_contain_text("empty.txt has no lines with text")


def lines(user: User, whole: str, *, is_json: bool = False) -> Any:
    return user.page.evaluate(
        """async ([whole, isJson]) => {
            const {ofLines} = await import(new URL("ui/panels/map_texts.js", document.baseURI));
            const {spots, all} = ofLines(whole, isJson);
            return {all, texts: spots.map(({text, line}) => [line, text])};
        }""",
        [whole, is_json],
    )


def test_of_too_many_lines_evenly_spread_ones_are_shown(with_chats: User) -> None:
    found = lines(with_chats, "\n".join(map(str, range(1, 5001))))
    assert found["all"] == 5000
    numbers = [line for line, _ in found["texts"]]
    assert len(numbers) == 2000
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    assert steps == {2, 3}
    assert numbers[-1] > 4990


def test_of_json_lines_the_text_is_shown(with_chats: User) -> None:
    whole = "\n".join(
        [
            '{"id": "a longer one than the text", "text": "the text"}',
            '{"messages": [{"role": "user", "content": "asked"}, {"content": "said"}]}',
            '"a string"',
            "{torn",
            '{"number": 5}',
        ]
    )
    found = lines(with_chats, whole, is_json=True)
    assert [text for _, text in found["texts"]] == [
        "the text",
        "asked\n\nsaid",
        "a string",
        "{torn",
        '{"number": 5}',
    ]
