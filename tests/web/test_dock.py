"""The dock beside the chat: opened and closed, resized, linked to, exported."""

import json
import re

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.web.user import Desk, User, until

pytestmark = pytest.mark.browser

TABLE = """
const entry = (title, name) => ({
  title: () => title,
  look: () => `Look for ${title.toLowerCase()}.`,
  load: () => import(`./${name}.js`),
});
export const table = { circles: entry("Circles", "sample"), rows: entry("Rows", "second") };
"""
# A drawing whose colour is a style's, a field, and something that goes on.
SAMPLE = """
let shown;
export function show(element, settings, dock) {
  shown = element;
  element.dataset.settings = JSON.stringify(settings);
  dock.link({ layer: settings.layer ?? "0" });
  if (settings.fails) throw new Error("the sample fails");
  if (settings.slow) dock.progress("Counting", 0.5, () => dock.progress());
  element.innerHTML ||= `<label>Note <input></label><svg viewBox="0 0 20 10" width="200"
    height="100" role="img" aria-label="A circle">
    <circle cx="5" cy="5" r="4" class="notice"/></svg>`;
  element.querySelector("circle").style.fill = "rgb(10, 20, 30)";
}
export const hide = () => { shown.dataset.hidden = (Number(shown.dataset.hidden) || 0) + 1; };
export const picture = () => shown.querySelector("svg");
export const data = () =>
  [{ name: "one, two", values: new Float32Array([1, 2]) }, { name: "b", more: NaN }];
"""
SECOND = 'export function show(element) { element.textContent = "Nothing but words"; }'
OPEN_CIRCLES = """async () => {
    const {emit} = await import("/ui/events.js");
    emit("panelwanted", {name: "circles", settings: {}});
}"""


def give_script(page: Page, url: str, body: str) -> None:
    page.route(url, lambda route: route.fulfill(body=body, content_type="text/javascript"))


@pytest.fixture
def user(desk: Desk) -> User:
    user = desk.tab()
    for name, body in {"table": TABLE, "sample": SAMPLE, "second": SECOND}.items():
        give_script(user.page, f"**/ui/panels/{name}.js", body)
    return user


def dock_of(user: User) -> Locator:
    return user.page.get_by_role("complementary", name="Look inside")


def box_of(element: Locator) -> FloatRect:
    box = element.bounding_box()
    assert box
    return box


def look_inside(page: Page) -> None:
    page.get_by_role("button", name="Look inside").click()


def test_nothing_of_it_comes_before_it_is_opened(user: User) -> None:
    assert not [url for url in user.requests if "dock" in url or "panels/" in url]
    look_inside(user.page)
    expect(dock_of(user)).to_be_visible()
    assert [url for url in user.requests if url.endswith("dock.js")]
    assert not [url for url in user.requests if url.endswith("second.js")]


def test_panels_keep_what_is_in_them(user: User) -> None:
    page, dock = user.page, dock_of(user)
    look_inside(page)
    expect(dock.get_by_role("heading", name="Circles")).to_be_visible()
    expect(dock).to_contain_text("Look for circles.")
    expect(dock.get_by_role("tab", name="Circles")).to_be_focused()
    dock.get_by_label("Note").fill("work of an hour")
    page.keyboard.press("Escape")  # leaves the field
    expect(dock.get_by_role("tab", name="Circles")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(dock.get_by_role("tabpanel", name="Rows")).to_have_text("Nothing but words")
    expect(page.locator("#panel-circles")).to_have_attribute("data-hidden", "1")
    page.keyboard.press("Escape")
    expect(dock).to_be_hidden()
    expect(page.get_by_role("button", name="Look inside")).to_be_focused()
    page.evaluate(OPEN_CIRCLES)
    expect(dock.get_by_label("Note")).to_have_value("work of an hour")
    dock.get_by_role("button", name="Close the panel").click()
    expect(dock).to_be_hidden()
    expect(page).to_have_url(user.url)
    look_inside(page)
    expect(dock.get_by_role("heading", name="Circles")).to_be_visible()
    assert user.complaints == []


def test_escape_in_it_leaves_an_answer_alone(user: User) -> None:
    user.page.evaluate("inpage.held = true")
    user.composer.fill("Hello")
    user.composer.press("Enter")
    expect(user.stop).to_be_visible()
    look_inside(user.page)
    dock_of(user).get_by_label("Note").press("Escape")
    dock_of(user).get_by_role("tab", name="Circles").press("Escape")
    expect(dock_of(user)).to_be_hidden()
    expect(user.stop).to_be_visible()
    user.page.evaluate("inpage.held = false")
    user.answered()


def test_it_is_resized_and_stays_so(user: User) -> None:
    page, dock = user.page, dock_of(user)
    look_inside(page)
    handle = dock.get_by_role("separator")
    before = box_of(dock)
    handle.press("ArrowLeft")
    handle.press("ArrowLeft")
    until(page, lambda: box_of(dock)["width"] > before["width"], "it is wider")
    wider = box_of(dock)
    page.mouse.move(wider["x"], wider["y"] + 300)
    page.mouse.down()
    page.mouse.move(page.viewport_size["width"] - 420, 300)  # type: ignore[index]
    page.mouse.up()
    page.mouse.move(10, 10)
    until(page, lambda: abs(box_of(dock)["width"] - 420) < 6, "it is as wide as it was dragged")
    dragged = box_of(dock)
    page.reload()
    expect(dock).to_be_visible()  # the address has it
    until(page, lambda: abs(box_of(dock)["width"] - dragged["width"]) < 2, "it is as wide again")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(handle).to_have_attribute("aria-orientation", "horizontal")
    until(page, lambda: box_of(dock)["width"] == 390, "it is as wide as the window")
    below = box_of(dock)
    assert below["x"] == 0
    assert below["y"] > 300
    expect(user.composer).to_be_in_viewport()
    handle.press("Home")
    until(page, lambda: box_of(dock)["height"] < below["height"], "it is lower")


def test_a_link_opens_it_with_its_settings(user: User) -> None:
    page = user.page
    page.goto(f"{user.url}#panel=circles&layer=3")
    panel = page.locator("#panel-circles")
    expect(panel).to_have_attribute("data-settings", '{"layer":"3"}')
    dock_of(user).get_by_role("button", name="Copy link").click()
    expect(user.notices).to_contain_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == f"{user.url}#panel=circles&layer=3"
    page.evaluate("location.hash = '#panel=no-such-panel'")
    expect(dock_of(user).get_by_role("heading", name="Circles")).to_be_visible()


def test_progress_and_faults_are_told(user: User) -> None:
    page, dock = user.page, dock_of(user)
    page.evaluate("location.hash = '#panel=circles&slow=1'")
    expect(dock.get_by_role("progressbar", name="Progress")).to_have_attribute("value", "0.5")
    expect(dock.get_by_role("status")).to_have_text("Counting")
    dock.get_by_role("button", name="Stop").click()
    expect(dock.get_by_role("progressbar")).to_be_hidden()
    page.evaluate("location.hash = '#panel=circles&fails=1'")
    expect(dock.get_by_role("alert")).to_have_text("the sample fails")


def test_pictures_and_data_are_exported(user: User) -> None:
    page, dock = user.page, dock_of(user)
    look_inside(page)

    def exported(kind: str) -> bytes:
        dock.get_by_role("button", name="Export", exact=True).click()
        with page.expect_download() as download:
            dock.get_by_role("button", name=kind).click()
        return download.value.path().read_bytes()

    drawing = exported("Picture (SVG)").decode()
    assert 'fill="rgb(10, 20, 30)"' in drawing
    assert re.search(r'<svg[^>]* width="200" height="100"', drawing)
    assert exported("Picture (PNG)").startswith(b"\x89PNG")
    rows = json.loads(exported("Data (JSON)"))
    assert rows == [{"name": "one, two", "values": [1, 2]}, {"name": "b", "more": "NaN"}]
    table = exported("Data (CSV)").decode()
    assert table == 'name,values,more\r\n"one, two","[1,2]",\r\nb,,NaN\r\n'


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_everybody_can_use_it(user: User, scheme: str) -> None:
    user.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    user.page.evaluate("location.hash = '#panel=circles&slow=1'")
    expect(dock_of(user).get_by_role("heading", name="Circles")).to_be_visible()
    for width in (1280, 800, 360):
        user.page.set_viewport_size({"width": width, "height": 740})
        assert user.faults_of_access() == [], f"{width} pixels wide"
        sideways = "() => document.scrollingElement.scrollWidth > innerWidth"
        assert not user.page.evaluate(sideways), f"sideways at {width} pixels"
    assert user.complaints == []
