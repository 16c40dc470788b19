"""The measurement of engines: start-ups, a check of the output, then rounds of generations.

Every engine has its turn in every round, so that whatever else the machine does meets all of them
alike. Standard library only: the GPU machine runs this, too.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from bench.engines import Engine, Run

REACHED_LIMIT_S = 20  # to hear how far an unfinished generation is
MEMORY_LIMIT_S = 120
SPECULATED = 192  # tokens of an answer that may repeat itself

Json = dict[str, Any]
Say = Callable[[str], None]


class PageFault(Exception):
    """An error of a page that could not do what it was asked; the text says why."""


class PageTimeout(PageFault):
    """An error of a page that did not answer in time."""


class Page(Protocol):
    """An engine's page in a browser of its own; `call` runs a method of globalThis.bench in it."""

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any: ...

    def fetched_bytes(self) -> int: ...

    def renderer_bytes(self) -> int | None: ...

    def close(self) -> None: ...


OpenPage = Callable[[Engine, Path], Page]  # with a browser profile's folder


class Contestant:
    """An engine, its open page, and its measurements so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.page: Page | None = None
        self.faults: list[str] = []
        self.facts: Json = {}
        self.check: Json | None = None
        self.start_up: dict[str, list[float]] = {"cold": [], "warm": []}
        self.load: dict[str, list[float]] = {"cold": [], "warm": []}
        self.fetched: dict[str, int] = {}
        self.runs: dict[int, dict[str, list[float]]] = {
            run.context: {"prefill": [], "decode": [], "first_token_s": []} for run in engine.runs
        }
        self.usage: dict[int, Json | None] = {}  # by context: what the engine said of its last run
        self.memory: Json = {}
        # By method: milliseconds of one token's ops at context 128, what 300 dispatches cost, what
        # verifying several tokens costs and gains, what steering and looking into the model cost.
        self.beside: dict[str, Any] = {}

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Record a fault, which ends this engine's part; the others go on."""
        try:
            yield
        except PageFault as fault:
            self.faults.append(f"{what}: {fault}")
            self.close()

    def generate(self, prompt: Json, count: int) -> Json:
        assert self.page is not None
        try:
            made: Json = self.page.call("generate", prompt, count, limit_s=self.engine.limit_s)
        except PageTimeout as fault:
            raise PageTimeout(f"{fault}, with {self._reached()} of {count} tokens") from None
        if len(made["ids"]) != count:
            raise PageFault(f"it made {len(made['ids'])} tokens instead of {count}")
        return made

    def _reached(self) -> str:
        assert self.page is not None
        try:
            return str(self.page.call("reached", limit_s=REACHED_LIMIT_S))
        except PageFault:
            return "an unknown number"

    def close(self) -> None:
        page, self.page = self.page, None
        if page is not None:
            page.close()

    def result(self) -> Json:
        return {
            "key": self.engine.key,
            "title": self.engine.title,
            "facts": self.facts,
            "check": self.check,
            "start_up_s": self.start_up,
            "load_s": self.load,
            "fetched_bytes": self.fetched,
            "runs": {
                str(run.context): {
                    "prompt_tokens": run.prompt_length,
                    "decoded_tokens": run.tokens,
                    **self.runs[run.context],
                    "usage": self.usage.get(run.context),
                }
                for run in self.engine.runs
            },
            "memory": self.memory,
            "gpu_ops": self.beside.get("gpuOps"),
            "submission": self.beside.get("submission"),
            "speculation": self.beside.get("speculation"),
            "glass": self.beside.get("glass"),
            "faults": self.faults,
            "notes": list(self.engine.notes),
        }


def run_bench(
    engines: Sequence[Engine], open_page: OpenPage, prompts: Json, say: Say
) -> list[Json]:
    """Return a result for each engine, in order.

    One that fails is reported, and the others go on.
    """
    contestants = [Contestant(engine) for engine in engines]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profiles:
        try:
            measure_start_ups(contestants, open_page, Path(profiles), say)
            open_all(contestants, open_page, Path(profiles), prompts, say)
            measure_rounds(contestants, prompts, say)
            measure_memory(contestants)
            measure_beside(contestants, prompts)
        finally:
            for contestant in contestants:
                contestant.close()
    return [contestant.result() for contestant in contestants]


# Start-up ----------------------------------------------------------------------------------------


def measure_start_ups(
    contestants: Sequence[Contestant], open_page: OpenPage, profiles: Path, say: Say
) -> None:
    """Cold: a browser that never saw the page. Warm: the same browser, started once more."""
    for number in range(max(c.engine.start_ups for c in contestants)):
        for contestant in contestants:
            if number >= contestant.engine.start_ups or contestant.faults:
                continue
            profile = profiles / f"{contestant.engine.key}-{number}"
            for kind in ("cold", "warm"):
                with contestant.attempt(f"{kind} start"):
                    measure_start_up(contestant, kind, open_page, profile)
                    seconds = contestant.start_up[kind][-1]
                    say(f"start {number + 1}, {contestant.engine.key}, {kind}: {seconds:.1f} s")
                contestant.close()


def measure_start_up(contestant: Contestant, kind: str, open_page: OpenPage, profile: Path) -> None:
    """`kind`: cold (an empty profile) or warm (one that has the model)."""
    opened = open_engine(contestant, open_page, profile)
    assert contestant.page is not None
    contestant.start_up[kind].append(opened["ready_s"])
    contestant.load[kind].append(opened["load_s"])
    contestant.fetched[kind] = contestant.page.fetched_bytes()


def open_engine(contestant: Contestant, open_page: OpenPage, profile: Path) -> Json:
    """Open the engine's page and load its model; return what the page says about both."""
    engine = contestant.engine
    contestant.page = open_page(engine, profile)
    opened: Json = contestant.page.call("open", engine.options, limit_s=engine.limit_s)
    contestant.facts = {**opened["facts"], "last_load_s": opened["load_s"]}
    return opened


# Generation --------------------------------------------------------------------------------------


def open_all(
    contestants: Sequence[Contestant],
    open_page: OpenPage,
    profiles: Path,
    prompts: Json,
    say: Say,
) -> None:
    """Every engine loaded, found to compute what torch does, and warmed up."""
    for contestant in contestants:
        if contestant.faults:
            continue
        engine = contestant.engine
        with contestant.attempt("start"):
            open_engine(contestant, open_page, profiles / engine.key)
        with contestant.attempt("check of the output"):
            if contestant.page and engine.checked:
                contestant.check = check_output(contestant, prompts["check"])
                agreed = contestant.check["agreed"]
                say(f"{engine.key}: {agreed} of {engine.checked} greedy ids are torch's")
        for run in engine.runs if engine.warm_up else ():
            if run.is_long:
                continue
            with contestant.attempt(f"warm-up at context {run.context}"):
                if contestant.page:
                    contestant.generate(prompts["contexts"][str(run.context)][-1], 4)


def check_output(contestant: Contestant, check: Json) -> Json:
    """Count the first ids of a greedy continuation that are torch's."""
    prompt = {"ids": check["ids"], "text": check["text"], "wantsIds": True}
    ids = contestant.generate(prompt, contestant.engine.checked)["ids"]
    return {"agreed": agreement(ids, check["continuation"]), "of": contestant.engine.checked}


def agreement(ids: Sequence[int], wanted: Sequence[int]) -> int:
    """Count the ids that are the same, up to the first that is not."""
    pairs = zip(ids, wanted, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(ids))


def measure_rounds(contestants: Sequence[Contestant], prompts: Json, say: Say) -> None:
    """Engines take turns, so that a machine that slows down is slow for all of them."""
    rounds = max(run.repeats for c in contestants for run in c.engine.runs)
    for number in range(rounds):
        for contestant in contestants:
            for run in contestant.engine.runs:
                if number < run.repeats and contestant.page:
                    with contestant.attempt(f"generation at context {run.context}"):
                        measure_run(contestant, run, number, prompts)
                        prefill, decode, _ = contestant.runs[run.context].values()
                        say(
                            f"round {number + 1}, {contestant.engine.key}, context {run.context}: "
                            f"prefill {prefill[-1]:.2f}, decode {decode[-1]:.2f} tok/s"
                        )


def measure_run(contestant: Contestant, run: Run, number: int, prompts: Json) -> None:
    """Measure one generation; each repeat takes another prompt, so that no cache can help."""
    variants = prompts["contexts"][str(run.context)]
    made = contestant.generate(variants[number % len(variants)], 1 + run.tokens)
    contestant.usage[run.context] = made.get("usage")
    for name, value in speeds(made["marks"], run.prompt_length).items():
        contestant.runs[run.context][name].append(value)


def speeds(marks: Sequence[Sequence[float]], prompt_length: int) -> dict[str, float]:
    """Return the speeds of marks [milliseconds since the call, tokens until then].

    The marks are made at the engine's own callbacks. Tokens may come in batches: decoding is timed
    from the first mark to the last.
    """
    (first_ms, first_tokens), (last_ms, last_tokens) = marks[0], marks[-1]
    decode_ms = last_ms - first_ms
    return {
        "prefill": prompt_length / first_ms * 1000,
        "decode": (last_tokens - first_tokens) / decode_ms * 1000 if decode_ms else 0.0,
        "first_token_s": first_ms / 1000,
    }


def measure_memory(contestants: Sequence[Contestant]) -> None:
    """Measure each page's memory, once all rounds are over."""
    for contestant in contestants:
        if contestant.page:
            with contestant.attempt("memory"):
                held = contestant.page.call("memory", limit_s=MEMORY_LIMIT_S)
                contestant.memory = {**held, "renderer_bytes": contestant.page.renderer_bytes()}


def measure_beside(contestants: Sequence[Contestant], prompts: Json) -> None:
    """Measure what else an engine is asked for; those that cannot tell report nothing."""
    prompt = prompts["contexts"]["128"][0]
    for contestant in contestants:
        engine, found = contestant.engine, contestant.beside
        methods: dict[str, tuple[str, tuple[Any, ...], float]] = {
            "gpuOps": ("GPU time by op", (), MEMORY_LIMIT_S),
            "submission": ("the cost of submitting", (), MEMORY_LIMIT_S),
            "speculation": ("speculation", (prompt, SPECULATED), engine.limit_s),
            "glass": ("steering and views", (prompt, 1 + engine.runs[0].tokens), engine.limit_s),
        }
        for method in engine.beside:
            what, arguments, limit_s = methods[method]
            if contestant.page:
                with contestant.attempt(what):
                    found[method] = contestant.page.call(method, *arguments, limit_s=limit_s)
