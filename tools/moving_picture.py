"""The README's picture that moves: python -m tools.moving_picture FILE.png.

A stranger's first minute with the default model: start, ask, answer. Whatever happens is recorded
as it is and played faster, for there may be no graphics card here; waits are cut short.
"""

import io
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect

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
COLOURS = 256  # in the palette of a PNG


class Recording:
    """Screenshots, each with the second it was taken."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.shots: list[tuple[float, bytes]] = []

    def shoot(self) -> None:
        """Take a screenshot; one that shows nothing new is not kept."""
        image = self._page.screenshot()
        if not self.shots or self.shots[-1][1] != image:
            self.shots.append((time.monotonic(), image))

    def shoot_until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self.shoot()
        self.shoot()


def first_minute(page: Page) -> tuple[list[tuple[float, bytes]], int]:
    """Return the recording, and the place in it where the answer begins."""
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


def thin_out(shots: list[tuple[float, bytes]], asked: int) -> tuple[list[tuple[float, bytes]], int]:
    """Every second, third … one of an answer, so that there are not too many; the last stays."""
    step = max(1, -(-len(shots) // MAX_FRAMES))
    answer = [*shots[asked:-1:step], shots[-1]]
    return [*shots[:asked], *answer], asked


def pace(shots: list[tuple[float, bytes]], asked: int) -> list[float]:
    """Return how long each shot stays: the answer takes ANSWER_SECONDS, and no wait is long."""
    times = [at for at, _ in shots]
    factor = ANSWER_SECONDS / (times[-1] - times[asked])
    spans = [(after - before) * factor for before, after in pairwise(times)]
    stays = [min(max(span, MIN_SECONDS), MAX_SECONDS) for span in spans[1:]]
    return [FIRST_SECONDS, *stays, LAST_SECONDS]


def save_animation(shots: list[bytes], seconds: list[float], out: Path) -> None:
    """Write screenshots as one animated PNG that repeats; all of them share a palette."""
    frames = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    width, height = frames[0].size
    strip = Image.new("RGB", (width, height * len(frames)))
    for number, frame in enumerate(frames):
        strip.paste(frame, (0, number * height))
    indexed = strip.quantize(COLOURS, dither=Image.Dither.NONE)
    first, *others = [
        indexed.crop((0, number * height, width, (number + 1) * height))
        for number in range(len(frames))
    ]
    milliseconds = [round(span * 1000) for span in seconds]
    first.save(out, save_all=True, append_images=others, duration=milliseconds, loop=0)


def main(out: Path) -> None:
    """Record the picture; it takes a few minutes without a graphics card."""
    with visiting(SIZE) as page:
        shots, asked = thin_out(*first_minute(page))
    save_animation([image for _, image in shots], pace(shots, asked), out)
    print(f"{out}: {len(shots)} frames, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
