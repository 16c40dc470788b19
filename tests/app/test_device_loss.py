"""device.destroy() at the worst moments: the same text, a word to the user, and all goes on."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.app.conftest import ApiPage, opened
from tests.toy_model import NAME

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

REQUEST = {
    "prompt_token_ids": [5 + place % 200 for place in range(120)],
    "temperature": 0,
    "max_tokens": 40,  # two batches are under way when one is lost: there must be more
    "ignore_eos": True,
}
# Destroys the device at some events of the next answer: in the worker, so that none comes too late.
# Batches keep the size that was found for them; here each is one token.
ONE_BY_ONE = """
batches = engine.model.session.batches
batches.steps, batches.arrived = 1, lambda tokens, now: None
"""
DESTROY_AT = """
from collections import Counter
from inpage_bridge import bridge
losses, events = [], Counter()

def happened(stage):
    events[stage] += 1
    event = f"{stage} {events[stage]}"
    if event in AT:
        losses.append(event)
        bridge.device().destroy()

async def generate(prompt, options, cancel, on_prefill, *others):
    def read(done, total):
        on_prefill(done, total)
        happened("prefill")

    async for piece in type(model)._generate(model, prompt, options, cancel, read, *others):
        yield piece
        happened("decode")

model._generate = generate
"""
STREAM = """
const notices = [];
const unsubscribe = inpage.onNotice(({ kind, text }) => notices.push([kind, text]));
const tokens = [];
let reason;
for await (const { choices: [choice] } of inpage.completions.create({ ...given, stream: true })) {
  tokens.push(...choice.token_ids);
  reason = choice.finish_reason;
}
unsubscribe();
return { notices, tokens, reason }
"""
ANSWER = "return (await inpage.completions.create(given)).choices[0].token_ids"


@pytest.fixture(scope="module")
def started(browser: Browser, gpu_toy_site_url: str) -> Iterator[ApiPage]:
    """Open a page on the GPU, which can be lost."""
    with opened(browser, gpu_toy_site_url) as api:
        yield api


def test_the_same_text_after_three_losses(slow: ApiPage) -> None:
    at = ["prefill 2", "decode 2", "decode 6"]
    undisturbed = slow.run(ANSWER, REQUEST)
    slow.python("engine.model.session.forget()")
    slow.python(ONE_BY_ONE)
    slow.python(DESTROY_AT.replace("in AT", f"in {at}"))
    outcome = slow.run(STREAM, REQUEST)
    assert slow.python("del model._generate, batches.arrived; losses") == at
    assert outcome["tokens"] == undisturbed
    assert outcome["reason"] == "length"
    kinds = [kind for kind, _ in outcome["notices"]]
    assert kinds == ["device_lost", "recovered"] * len(at)
    assert all(text for _, text in outcome["notices"])
    assert slow.python("device is engine.device is graph.device and graph is model.graph") is True
    assert slow.run(ANSWER, REQUEST) == undisturbed


def test_a_loss_while_nothing_happens(api: ApiPage) -> None:
    undisturbed = api.run(ANSWER, REQUEST)
    api.python("engine.device.destroy()")
    assert api.run(ANSWER, REQUEST) == undisturbed


def test_a_loss_during_verify(api: ApiPage) -> None:
    report = api.run(
        """let lost = false;
        const onProgress = () => {
          if (!lost) inpage.python("from inpage_bridge import bridge; bridge.device().destroy()");
          lost = true;
        };
        return inpage.verify({ onProgress })"""
    )
    assert report["ok"] is True
    assert report["summary"]


def test_a_loss_without_a_model_and_one_during_the_load(api: ApiPage) -> None:
    name = api.run(
        """await inpage.python("engine.device.destroy()");
        await inpage.unload();
        let lost = false;
        const onProgress = ({ phase }) => {
          if (lost || phase !== "upload") return;
          lost = true;
          inpage.python("from inpage_bridge import bridge; bridge.device().destroy()");
        };
        return (await inpage.load(given, { onProgress })).name""",
        NAME,
    )
    assert name == NAME
    assert len(api.run(ANSWER, REQUEST)) == REQUEST["max_tokens"]


def test_a_loss_whose_replacement_did_not_come_to_an_end(api: ApiPage) -> None:
    """The engine then still has the old device, whose kernels are gone while another one lives."""
    undisturbed = api.run(ANSWER, REQUEST)
    api.python("await gpu.request_device()\nNone")
    api.run("await inpage.unload(); await inpage.load(given)", NAME)
    assert api.run(ANSWER, REQUEST) == undisturbed


STALLED = """
import asyncio
async def wait_for_ever(): await asyncio.Event().wait()
model.session.device._replace = wait_for_ever
engine.device.destroy()
"""


@pytest.mark.parametrize("call", ["completions.create({ ...given, signal })", "verify({ signal })"])
def test_stop_ends_the_wait_for_a_replacement(api: ApiPage, call: str) -> None:
    undisturbed = api.run(ANSWER, REQUEST)
    api.python(STALLED)
    body = """const stop = new AbortController();
        const { signal } = stop;
        inpage.onNotice(({ kind }) => { if (kind === "device_lost") stop.abort(); });
        return inpage.CALL.then(
          ({ choices }) => choices[0].finish_reason, ({ code }) => code)"""
    assert api.run(body.replace("CALL", call), REQUEST) in ("abort", "aborted")
    api.python("model.session.device._replace = model.recover")
    assert api.run(ANSWER, REQUEST) == undisturbed


def test_stop_ends_a_verification(api: ApiPage) -> None:
    error = api.fails(
        """const stop = new AbortController();
        return inpage.verify({ signal: stop.signal, onProgress: () => stop.abort() })"""
    )
    assert error["code"] == "aborted"
    assert api.run("return inpage.verify()")["ok"]
