"""python -m tools.moving_picture FILE.png: the README's picture that moves.

A stranger's first minute with the default model: start, ask, answer. Whatever happens is recorded
as it is and played faster, for there may be no graphics card here; waits are cut short.
"""

import base64
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, ViewportSize, expect

from tools.animated_png import Frame, animated_png
from tools.screenshot import WAIT_MILLISECONDS, visiting

SIZE: ViewportSize = {"width": 800, "height": 520}
QUESTION = "What is a black hole? Two sentences."
# The likeliest words, so that the same picture comes out each time.
SETTINGS = {"version": 1, "chosen": [["temperature", "0"], ["repetition_penalty", "1.1"]]}
KEYS_AT_ONCE = 3
ANSWER_SECONDS = 7  # in the picture
MIN_SECONDS, MAX_SECONDS = 0.06, 0.7  # that a frame stays
FIRST_SECONDS, LAST_SECONDS = 1.5, 4
MAX_FRAMES = 90
PIXELS = """async text => {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const {data} = canvas.getImageData(0, 0, image.width, image.height);
    let letters = "";
    for (let at = 0; at < data.length; at += 4) {
        letters += String.fromCharCode(...data.slice(at, at + 3));
    }
    return btoa(letters);
}"""


class Recording:
    """Screenshots, each with the second it was taken."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.shots: list[tuple[float, bytes]] = []

    def shoot(self) -> None:
        """One that shows nothing new is not kept."""
        image = self._page.screenshot()
        if not self.shots or self.shots[-1][1] != image:
            self.shots.append((time.monotonic(), image))

    def shoot_until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self.shoot()
        self.shoot()


def first_minute(page: Page) -> tuple[list[tuple[float, bytes]], int]:
    """The recording, and the place in it where the answer begins."""
    page.evaluate("text => localStorage.inpageSettings = text", json.dumps(SETTINGS))
    page.reload()
    start = page.get_by_role("button", name="Start chatting")
    expect(start).to_be_enabled(timeout=WAIT_MILLISECONDS)
    recording = Recording(page)
    body, stop = page.locator("body"), page.get_by_role("button", name="Stop")
    recording.shoot()
    start.click()
    recording.shoot_until(lambda: body.get_attribute("data-model") == "ready")
    field = page.get_by_label("Message", exact=True)
    for at in range(0, len(QUESTION), KEYS_AT_ONCE):
        field.press_sequentially(QUESTION[at : at + KEYS_AT_ONCE])
        recording.shoot()
    page.keyboard.press("Enter")
    asked = len(recording.shots)
    stop.wait_for()
    recording.shoot_until(lambda: not stop.is_visible())
    return recording.shots, asked


def thinned(shots: list[tuple[float, bytes]], asked: int) -> tuple[list[tuple[float, bytes]], int]:
    """Every second, third … one of an answer, so that there are not too many; the last stays."""
    step = max(1, -(-len(shots) // MAX_FRAMES))
    answer = [*shots[asked:-1:step], shots[-1]]
    return [*shots[:asked], *answer], asked


def paced(shots: list[tuple[float, bytes]], asked: int) -> list[float]:
    """How long each stays: the answer takes ANSWER_SECONDS, and nothing is waited for long."""
    times = [at for at, _ in shots]
    factor = ANSWER_SECONDS / (times[-1] - times[asked])
    spans = [(after - before) * factor for before, after in pairwise(times)]
    stays = [min(max(span, MIN_SECONDS), MAX_SECONDS) for span in spans[1:]]
    return [FIRST_SECONDS, *stays, LAST_SECONDS]


def frames_of(page: Page, shots: list[tuple[float, bytes]], seconds: list[float]) -> list[Frame]:
    """The browser that took the pictures takes them apart."""
    page.goto("about:blank")
    frames = []
    for (_, image), span in zip(shots, seconds, strict=True):
        letters = page.evaluate(PIXELS, base64.b64encode(image).decode())
        pixels = np.frombuffer(base64.b64decode(letters), np.uint8)
        frames.append((pixels.reshape(SIZE["height"], SIZE["width"], 3), span))
    return frames


def main(out: Path) -> None:
    """Takes a few minutes without a graphics card."""
    with visiting(SIZE) as page:
        shots, asked = thinned(*first_minute(page))
        frames = frames_of(page, shots, paced(shots, asked))
    out.write_bytes(animated_png(frames))
    print(f"{out}: {len(frames)} frames, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
