"""Tokens per second with and without proposals, on text that repeats its prompt and on other text.

python -m bench.speculation [--model models/SmolLM2-135M-Instruct] [--device cpu] [--threads 2]
                            [--rounds 5] [--tokens 192] [--draft MODEL]

Both ways take turns on one loaded model, and each round changes the prompt. With proposals the
engine decides by itself, as it does for users; the first round, in which it learns what calls cost,
does not count.
"""

import argparse
import asyncio
import statistics
import time
from typing import Any

import inpage
from py_runtime.model import Model, writer

PASSAGE = (
    "The ferry leaves the old harbour at seven in the morning and returns at nine in the evening. "
    "Passengers should bring warm clothes, because the wind on the upper deck is cold even in "
    "June. Tickets are sold at the small blue kiosk beside the lighthouse, and children under six "
    "travel free. Dogs are allowed on the lower deck only. The crossing takes two hours and ten "
    "minutes when the sea is calm. {season} the boat also stops at the island of the seven "
    "windmills, where the bakery opens at noon and the last bus to the village leaves at four.\n\n"
)
SEASONS = ("In spring", "In summer", "In autumn", "In winter", "On Sundays", "On holidays")
STORIES = (
    "The lighthouse keeper had not spoken to anyone for a year when",
    "My grandmother's recipe for onion soup begins with",
    "There are three reasons why rivers bend, and the first is",
    "When the orchestra had tuned its instruments, the conductor",
    "The history of the bicycle is a history of",
    "On the morning of the race, the youngest runner",
)


def prompts(number: int) -> dict[str, str]:
    """Return a prompt whose answer repeats it, and one whose answer does not."""
    passage = PASSAGE.format(season=SEASONS[number % len(SEASONS)])
    return {"repeating": 2 * passage + passage[:40], "other": STORIES[number % len(STORIES)]}


async def measure(model: Model, prompt: str, tokens: int, speculate: str | bool) -> float:
    """Return the seconds that the tokens after the first piece took."""
    model.session.forget()
    first = last = 0.0
    fields: dict[str, Any] = {
        "temperature": 0,
        "ignore_eos": True,
        "max_tokens": tokens,
        "speculate": speculate,
    }
    async for piece in model.complete(prompt, **fields):
        last = time.perf_counter()
        first = first or last
        assert piece.finish_reason != "abort"
    return last - first


async def compare(options: argparse.Namespace) -> None:
    """Print the medians of all rounds."""
    where = {"device": options.device, "threads": options.threads, "draft": options.draft}
    model = writer(await inpage.load(options.model, **where))
    seconds: dict[tuple[str, str | bool], list[float]] = {}
    verified: dict[str, list[int]] = {}
    for number in range(options.rounds + 1):
        for name, prompt in prompts(number).items():
            speculation = model.session.speculation
            before = speculation.proposed, speculation.accepted
            for speculate in ((False, "auto"), ("auto", False))[number % 2]:
                taken = await measure(model, prompt, options.tokens, speculate)
                seconds.setdefault((name, speculate), []).append(taken)
            counted = verified.setdefault(name, [0, 0])
            counted[0] += speculation.proposed - before[0]
            counted[1] += speculation.accepted - before[1]
    for name, (proposed, accepted) in verified.items():
        plain, auto = seconds[name, False][1:], seconds[name, "auto"][1:]
        ratios = [p / a for p, a in zip(plain, auto, strict=True)]
        rates = [(options.tokens - 1) / statistics.median(each) for each in (plain, auto)]
        print(
            f"{name}: {rates[0]:.1f} tok/s plain, {rates[1]:.1f} with proposals, "
            f"{statistics.median(ratios):.2f}x; {accepted} of {proposed} proposals came true"
        )
    model.unload()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare decoding with and without proposals.")
    parser.add_argument("--model", default="models/SmolLM2-135M-Instruct")
    parser.add_argument("--draft", help="a smaller model that proposes tokens")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=192)
    asyncio.run(compare(parser.parse_args()))
