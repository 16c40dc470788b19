"""`python -m tests.fuzz --minutes 10`: new inputs for every target, in turns, for so long.

With a target, a seed and a number it runs that one input again; --save writes it to a file.
"""

import argparse
import sys
import time
import warnings
from itertools import count, cycle
from pathlib import Path
from random import SystemRandom

from tests.fuzz.driver import Failed, Tally, attempt, input_of, run
from tests.fuzz.targets import TARGETS

TURN_SECONDS = 10.0


def main() -> int:
    given = _parse()
    warnings.simplefilter("ignore", SyntaxWarning)  # Python's, about the code that templates become
    chosen = [TARGETS[name] for name in ([given.target] if given.target else TARGETS)]
    seed = given.seed if given.seed is not None else SystemRandom().randrange(10**6)
    if given.number is not None:
        return _again(given.target, seed, given.number, given.save)
    print(f"seed {seed}, {given.minutes:g} minutes, {len(chosen)} targets", flush=True)
    ends = time.monotonic() + 60 * given.minutes
    turn = min(TURN_SECONDS, 60 * given.minutes / len(chosen))
    numbers = {target.name: count() for target in chosen}
    tallies = {target.name: Tally() for target in chosen}
    found = 0
    for target in cycle(chosen):
        until = time.monotonic() + turn
        while time.monotonic() < min(until, ends):
            try:
                run(target, seed, [next(numbers[target.name])], tallies[target.name])
            except Failed as failure:
                found += 1
                print(f"{target.name}: {failure}", flush=True)
        if time.monotonic() >= ends:
            break
    for name, tally in tallies.items():
        print(f"{name}: {_in_words(tally)}")
    print(f"{found} failures")
    return 1 if found else 0


def _again(name: str, seed: int, number: int, save: Path | None) -> int:
    data = input_of(TARGETS[name], seed, number)
    if save is not None:
        save.write_bytes(data)
    outcome, seconds, memory = attempt(TARGETS[name], data, f"{name} {seed} {number}", True)
    print(f"{len(data):,} bytes: {outcome}, {seconds:.2f} s, {memory:,} bytes of memory")
    return 0


def _in_words(tally: Tally) -> str:
    kinds = ", ".join(f"{number} {kind}" for kind, number in tally.outcomes.most_common())
    return (
        f"{kinds}; at most {tally.most_seconds:.2f} s (number {tally.slowest}) and "
        f"{tally.most_memory:,} bytes (number {tally.largest})"
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=list(TARGETS), help="only this one")
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--save", type=Path, help="write that one input to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
