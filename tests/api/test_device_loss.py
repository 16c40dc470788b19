"""device.destroy() at the worst moments: the same text, a word to the reader, and all goes on."""

import pytest

from tests.api.conftest import ApiPage
from tests.toy_model import NAME

pytestmark = pytest.mark.browser

REQUEST = {
    "prompt_token_ids": [5 + place % 200 for place in range(120)],
    "temperature": 0,
    "max_tokens": 12,
    "ignore_eos": True,
}
# Streams, and destroys the device at the events whose numbers are given.
DESTROYING = """
const notices = [];
const unsubscribe = inpage.onNotice(({ kind, text }) => notices.push([kind, text]));
const counts = { prefill: 0, decode: 0 };
const tokens = [];
let reason, losses = 0;
const request = { ...given.request, stream: true, stream_options: { include_progress: true } };
for await (const chunk of inpage.completions.create(request)) {
  const stage = chunk.progress ? "prefill" : "decode";
  if (given.at.includes(`${stage} ${++counts[stage]}`)) {
    losses++;
    await inpage.python("from inpage_bridge import bridge; bridge.device().destroy()");
  }
  tokens.push(...chunk.choices.flatMap(({ token_ids }) => token_ids));
  reason = chunk.choices[0]?.finish_reason ?? reason;
}
unsubscribe();
return { notices, tokens, reason, losses }
"""
ANSWER = "return (await inpage.completions.create(given)).choices[0].token_ids"


def test_the_same_text_after_three_losses(slow: ApiPage) -> None:
    at = ["prefill 2", "decode 2", "decode 6"]
    undisturbed = slow.run(ANSWER, REQUEST)
    slow.python("engine.model.session.forget()")
    outcome = slow.run(DESTROYING, {"at": at, "request": REQUEST})
    assert outcome["losses"] == len(at)
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
    assert len(api.run(ANSWER, REQUEST)) == 12
