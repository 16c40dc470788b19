"""Answers that outgrow their context: the oldest tokens slide out of it, as in torch.

The oracle is the decoder in torch, whose keys are turned back from where they were and on to where
they come to lie. Where the engine cannot do that, it computes what is left anew.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from export.decoder import Decoder
from export.gguf_source import GgufSource
from export.reference import reference_decoder
from export.sources import Quantisation
from py_runtime.decoder.config import TABLES
from py_runtime.generation.sliding import FIRST_TOKENS, Slide
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.generation.conftest import Toy
from tests.runners import CpuRunner, NativeRunner, PageRunner
from tests.toy_model import CONTEXT as TOY_CONTEXT

pytestmark = pytest.mark.torch

CONTEXT = 128
SIZES = {"max_position_embeddings": CONTEXT}
LONG = {**SIZES, "original_max_position_embeddings": 64}
# Slow turns stretched, others scaled, a part of a head that turns, layers that do not turn at all.
TURNED = {"llama 3": SIZES, "qwen2.5 yarn": SIZES, "phi-4-mini": LONG, "smollm3": SIZES}
ANEW = {"gemma 3": SIZES, "lfm2": SIZES}  # rings of a window; states of convolutions
STEPS = 160  # tokens of an answer, which slides three times
PROMPT = [3 + (7 * place + place * place) % 200 for place in range(90)]
FIELDS = {"temperature": 0, "ignore_eos": True, "context_overflow": "slide"}
WHOLE = {**FIELDS, "max_tokens": STEPS}


class Oracle:
    """The text that torch holds, some of which may have slid away."""

    def __init__(self, decoder: Decoder, is_turned: bool = True) -> None:
        self.decoder, self.is_turned = decoder, is_turned
        self.tokens: list[int] = []

    @torch.no_grad()
    def feed(self, tokens: list[int]) -> torch.Tensor:
        start = torch.tensor([len(self.tokens)])
        self.tokens += tokens
        return self.decoder(torch.tensor([tokens]), start)[0]

    @torch.no_grad()
    def slide(self, keep: int, drop: int) -> None:
        end = len(self.tokens)
        del self.tokens[keep : keep + drop]
        if not self.is_turned:
            tokens, self.tokens = self.tokens, []
            self.feed(tokens)
            return
        for number, layer in enumerate(self.decoder.layers):
            ending = self.decoder.config.layer_kind(number).tables
            keys, values = layer.self_attn.k_cache, layer.self_attn.v_cache
            moved = keys[:, keep + drop : end].clone()
            if ending is not None:
                before, after = slice(keep + drop, end), slice(keep, end - drop)
                moved = self.turned(self.turned(moved, ending, before, -1), ending, after, 1)
            keys[:, keep : end - drop] = moved
            values[:, keep : end - drop] = values[:, keep + drop : end].clone()

    def turned(self, keys: torch.Tensor, ending: str, rows: slice, way: int) -> torch.Tensor:
        """Return keys [1, S, K, D] turned by the angles of their rows, or back."""
        cos, sin = (getattr(self.decoder, f"{name}{ending}")[rows, None] for name in TABLES)
        length = (cos**2 + sin**2).sqrt()
        cos, sin, width = cos / length, way * sin / length, cos.shape[-1]
        first, second = keys[..., :width].chunk(2, -1)
        turned = keys[..., :width] * cos + torch.cat((-second, first), -1) * sin
        return torch.cat((turned, keys[..., width:]), -1)

    def leads(self, prompt: list[int], answer: list[int]) -> tuple[list[float], list[float]]:
        """Return the log odds of an answer's tokens, and by how much another led each."""
        slide, text = Slide(FIRST_TOKENS, CONTEXT), list(prompt)
        odds, leads = [], []
        logits = self.feed(prompt[len(self.tokens) :])
        for token in answer:
            odds.append(float(logits.log_softmax(-1)[token]))
            leads.append(float(logits.max() - logits[token]))
            text.append(token)
            dropped = slide.dropped(len(text)) - slide.dropped(len(text) - 1)
            if dropped:
                self.slide(FIRST_TOKENS, dropped)
            logits = self.feed([token])
        del self.tokens[-1]  # the last token drawn is not fed
        return odds, leads


class Case:
    """A family's file, and torch's answers."""

    def __init__(self, folder: Path, family: str) -> None:
        path, sizes = folder / "x.gguf", (TURNED | ANEW)[family]
        write_gguf(path, family, ARCHITECTURES[family], Kind.F32, changes=sizes)
        self.data = np.frombuffer(path.read_bytes(), np.uint8)
        source = GgufSource.open(path, Quantisation("none"))
        self.config = source.decoder_config(None)
        assert self.config.context == CONTEXT
        self.decoder = reference_decoder(source, self.config)
        self.family = family

    def oracle(self) -> Oracle:
        return Oracle(self.decoder, self.family in TURNED)

    def asked(
        self,
        runner: CpuRunner | NativeRunner | PageRunner,
        *steps: dict[str, Any],
        kv: str | None = None,
    ) -> Any:
        case = "tests.generation.state_cases"
        return runner.run(case, "turns", data=self.data, steps=list(steps), kv=kv)


class Cases(dict[str, Case]):
    """The families that tests have asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, family: str) -> Case:
        self[family] = Case(self._folders.mktemp("sliding"), family)
        return self[family]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return Cases(tmp_path_factory)


def check(case: Case, found: list[dict[str, Any]], tolerance: float) -> None:
    """Compare a whole answer and one with log odds, which the host draws."""
    for each in found:
        odds, leads = case.oracle().leads(PROMPT, each["tokens"])
        assert max(leads) < tolerance, "torch draws the same, but for ties"
        told = [entry["logprob"] for entry in each["logprobs"]]
        np.testing.assert_allclose(told, odds[: len(told)], atol=tolerance)
    for each in found:
        assert len(each["tokens"]) == STEPS
        slide = Slide(FIRST_TOKENS, CONTEXT)
        assert each["usage"]["slid_tokens"] == slide.dropped(len(PROMPT) + STEPS - 1)
        assert each["cache"] == slide.seen([*PROMPT, *each["tokens"][:-1]])
        assert each["finish_reason"] == "length"
        assert not each["usage"]["fills_context"]
        is_anew = case.family in ANEW
        assert (each["computed"] > len(PROMPT) + STEPS) == is_anew, "nothing is computed twice"


ASKED = (
    {"prompt": PROMPT, "fields": WHOLE},
    {"prompt": PROMPT, "fields": {**WHOLE, "logprobs": True}, "forget": True},
)


@pytest.mark.parametrize("family", [*TURNED, *ANEW])
def test_an_answer_goes_on_as_in_torch(family: str, cases: Cases, native: NativeRunner) -> None:
    check(cases[family], cases[family].asked(native, *ASKED), 1e-3)


@pytest.mark.parametrize(("kv", "tolerance"), [("f32", 1e-3), ("f16", 1e-2), ("q8", 5e-2)])
def test_on_the_cpu_with_each_type_of_caches(
    kv: str, tolerance: float, cases: Cases, cpu: CpuRunner
) -> None:
    check(cases["llama 3"], cases["llama 3"].asked(cpu, *ASKED, kv=kv), tolerance)


@pytest.mark.thorough
@pytest.mark.browser
def test_in_the_page(cases: Cases, in_page: PageRunner) -> None:
    case = cases["phi-4-mini"]
    check(case, case.asked(in_page, *ASKED), 1e-3)


def test_a_prompt_that_leaves_out_the_oldest_keeps_what_it_has(
    cases: Cases, native: NativeRunner
) -> None:
    """The next turn; the same again; and one that departs behind what has moved."""
    case = cases["llama 3"]
    fields = {**FIELDS, "max_tokens": 12}
    shorter = [*PROMPT[:10], *PROMPT[40:], 7, 8, 9]
    departing = [*shorter[:30], *PROMPT[:20]]
    prompts = (PROMPT, shorter, shorter, departing)
    first, next_turn, again, cut = case.asked(
        native, *({"prompt": prompt, "fields": fields} for prompt in prompts)
    )
    oracle = case.oracle()
    for prompt, each in zip(prompts, (first, next_turn, again, cut), strict=True):
        if each is next_turn:
            oracle.slide(10, 30)
        del oracle.tokens[each["usage"]["cached_tokens"] :]
        assert max(oracle.leads(prompt, each["tokens"])[1]) < 1e-3
    cached = [each["usage"]["cached_tokens"] for each in (first, next_turn, again, cut)]
    assert cached == [0, 60, len(shorter) - 1, 30]


def test_another_text_does_not_slide_into_it(cases: Cases, native: NativeRunner) -> None:
    """A few tokens that are the same elsewhere, of which most is not."""
    other = [*PROMPT[:10], *PROMPT[40:60], *range(100, 130)]
    fields = {**FIELDS, "max_tokens": 4}
    _, found = cases["llama 3"].asked(
        native, *({"prompt": prompt, "fields": fields} for prompt in (PROMPT, other))
    )
    assert found["usage"]["cached_tokens"] == 10


@pytest.mark.thorough_in_page
def test_a_chat_keeps_its_system_prompt_and_can_be_continued(toy: Toy) -> None:
    system = {"role": "system", "content": "You are a brief and friendly toy."}
    chat = [system, {"role": "user", "content": "B-C-D-E-F-G"}]
    fields = {**FIELDS, "max_tokens": TOY_CONTEXT}
    longer = {**FIELDS, "max_tokens": TOY_CONTEXT + 8}
    begun, whole = toy.ask(
        {"messages": chat, "fields": fields},
        {"messages": chat, "fields": longer, "forget": True},
    )
    assert len(begun["tokens"]) == TOY_CONTEXT
    assert whole["tokens"][:TOY_CONTEXT] == begun["tokens"]
    (head,) = toy.run("encode", chats=[[system]])
    kept = len(head) - 1  # without what begins an answer
    assert whole["cache"][:kept] == head[:kept]
    on = {**FIELDS, "max_tokens": 8, "continue_final_message": True}
    on["continue_token_ids"] = begun["tokens"]
    chat.append({"role": "assistant", "content": begun["text"]})
    _, continued = toy.ask(
        {"messages": chat[:2], "fields": fields}, {"messages": chat, "fields": on}
    )
    assert continued["tokens"] == whole["tokens"][TOY_CONTEXT:]
    assert continued["computed"] < 16, "what was held is held still"
