"""The pictures of docs/glass.md: python -m tools.view_pictures FOLDER [VIEW ...].

Each shows the page with the default model, an answer, and one panel of the dock.
"""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tools.screenshot import WAIT_MILLISECONDS, visiting

SIZE: ViewportSize = {"width": 1360, "height": 800}
SETTINGS = {
    "version": 1,
    "chosen": [["temperature", "0"], ["repetition_penalty", "1.1"], ["max_tokens", "48"]],
}
QUESTION = "What is the capital of France? Answer in one sentence."
COLOURS = 256  # in the palette of a PNG
DOCK_PERCENT = "64"  # of the window

# For the map: lines about four things.
LINES = """Chop the onions and fry them in butter until they are golden.
Add a pinch of salt to the dough and let it rest for an hour.
Bake the bread at 220 degrees until the crust is brown.
Stir the soup slowly and season it with pepper.
Whisk the eggs with sugar, then fold in the flour.
Gravity bends light that passes near a massive star.
An electron can be in two places until it is measured.
The speed of light is the same for every observer.
Energy can change its form, but it is never lost.
Atoms consist of protons, neutrons and electrons.
for (let i = 0; i < items.length; i++) total += items[i];
def add(a, b): return a + b
SELECT name FROM users WHERE age > 30 ORDER BY name;
if (error) throw new Error("the file was not found");
const sum = (values) => values.reduce((a, b) => a + b, 0);
Der Zug nach Berlin hat heute zwanzig Minuten Verspätung.
Am Sonntag gehen wir mit den Kindern in den Zoo.
Das Wetter wird morgen kühler, und es regnet.
Meine Schwester wohnt seit drei Jahren in Hamburg.
Bitte vergiss nicht, die Fenster zu schließen."""

Show = Callable[[Page, Locator], None]  # opens a panel's most telling state


def press(button: str, shown: str) -> Show:
    """Return what presses a panel's button and waits for what that shows."""

    def show(page: Page, panel: Locator) -> None:
        panel.get_by_role("button", name=button, exact=True).click()
        panel.locator(shown).first.wait_for()

    return show


def wait_for(shown: str) -> Show:
    """Return what waits for what a panel shows by itself."""
    return lambda page, panel: panel.locator(shown).first.wait_for()


def build_vector(page: Page, panel: Locator) -> None:
    """Build a vector of two tones and set its strength."""
    panel.get_by_text("New vector").click()
    panel.get_by_label("Name").fill("formal")
    panel.get_by_label("More like these").fill("Good evening, Madam.\nI should be most grateful.")
    panel.get_by_label("Less like these").fill("hey, what's up\ngimme that, dude")
    panel.get_by_role("button", name="Build vector").click()
    slider = panel.get_by_role("slider", name="Strength of formal")
    slider.wait_for()
    slider.fill("0.5")


def draw_map(page: Page, panel: Locator) -> None:
    """Draw a map of some lines."""
    panel.get_by_label("Map of").select_option("own")
    panel.get_by_label("Lines", exact=True).fill(LINES)
    panel.get_by_role("button", name="Draw the map").click()
    panel.locator("svg").get_by_role("option").first.wait_for()


def run_experiment(page: Page, panel: Locator) -> None:
    """Run an experiment of the notebook's gallery."""
    page.evaluate("location.hash = '#panel=notebook&experiment=norms'")
    cells = panel.get_by_role("region", name="Code cell")
    cells.last.locator(".run:not([data-count=''])").wait_for()
    expect(panel.locator(".cell[data-running]")).to_have_count(0)
    cells.last.locator(".outputs > *").last.scroll_into_view_if_needed()


def train_features(page: Page, panel: Locator) -> None:
    """Train an autoencoder as the notebook's experiment does, and look at the answer with it."""
    page.evaluate("location.hash = '#panel=notebook&experiment=autoencoder'")
    cells = page.locator("#panel-notebook").get_by_role("region", name="Code cell")
    cells.last.locator(".run:not([data-count=''])").wait_for()
    page.evaluate("location.hash = '#panel=features'")
    panel.get_by_role("button", name="Inspect", exact=True).click()
    panel.locator(".features-card .features-words").first.wait_for()


def open_op(page: Page, panel: Locator) -> None:
    """Choose an op of the graph, so that its arguments and costs show."""
    page.evaluate("location.hash = '#panel=graph&section=layer 3&tokens=1&context=128'")
    panel.get_by_role("button", name="swiglu").click()
    panel.get_by_role("table", name="Arguments").wait_for()


# Panel → what makes it worth a picture; in the order of docs/glass.md.
VIEWS: dict[str, Show] = {
    "lens": press("Inspect", ".cell"),
    "attention": press("Inspect", "[role=option]"),
    "patching": press("Move", ".cell"),
    "norms": press("Inspect", "svg.wide"),
    "neurons": press("Inspect", ".cell"),
    "steering": build_vector,
    "map": draw_map,
    "features": train_features,
    "timeline": wait_for("rect[role=option]"),
    "graph": open_op,
    "memory": wait_for("table"),
    "kernel_lab": wait_for("textarea, .cm-content"),
    "notebook": run_experiment,
}


def shoot_views(page: Page, folder: Path, wanted: list[str]) -> None:
    """Ask once, then take a picture of each panel beside the answer."""
    page.evaluate(
        "([settings, width]) => Object.assign(localStorage, "
        "{ inpageSettings: settings, inpageDockWidth: width })",
        [json.dumps(SETTINGS), DOCK_PERCENT],
    )
    page.reload()
    page.get_by_role("button", name="Start chatting").click()
    expect(page.locator("body")).to_have_attribute("data-model", "ready", timeout=WAIT_MILLISECONDS)
    page.get_by_label("Message", exact=True).fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=WAIT_MILLISECONDS)
    page.get_by_role("button", name="Chats", exact=True).click()
    answer = page.get_by_role("article", name="Answer").last
    answer.get_by_role("button", name="Show certainty").click()
    answer.locator(".tokens .tok").first.wait_for()
    for name in wanted:
        page.evaluate(f"location.hash = '#panel={name}'")
        panel = page.locator(f"#panel-{name}")
        panel.wait_for()
        VIEWS[name](page, panel)
        page.mouse.move(5, 5)  # nothing is pointed at
        save(page.screenshot(animations="disabled"), folder / f"{name}.png")


def save(screenshot: bytes, path: Path) -> None:
    """Write a screenshot with a palette, which takes a third of the bytes."""
    image = Image.open(io.BytesIO(screenshot)).convert("RGB")
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
    print(f"{path}: {path.stat().st_size:,} bytes")


def main(folder: Path, wanted: list[str]) -> None:
    """Take the pictures of the views that are named, or of all."""
    folder.mkdir(parents=True, exist_ok=True)
    with visiting(SIZE) as page:
        shoot_views(page, folder, wanted or list(VIEWS))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
