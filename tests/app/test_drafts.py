"""A load with a draft in the page: what is told of it, and how it goes and comes with its model."""

import pytest

from tests.app.conftest import ApiPage
from tests.toy_model import NAME

pytestmark = pytest.mark.browser

BYTES = "engine.device.counters.buffer_bytes_alive"
ASK = """return await inpage.completions.create({
  prompt: "the quick brown fox", temperature: 1, seed: 5, max_tokens: 24, ignore_eos: true,
  speculate: given,
})"""


def test_a_load_with_a_draft(api: ApiPage) -> None:
    """The toy is its own draft here: all that it proposes comes true."""
    # Anew, since answers of other tests may have left a second graph.
    assert api.run("return (await inpage.load(given)).draft", NAME) is None
    api.python("await engine.loaded.last.warming")
    held = api.python(BYTES)
    plain = api.run(ASK, False)
    draft = api.run("return (await inpage.load(given, { draft: given })).draft", NAME)
    api.python("await engine.loaded.last.warming")
    assert draft == api.run("return inpage.loaded.draft")
    assert draft["name"] == NAME
    assert api.python(BYTES) > held + draft["gpu_bytes"] / 2
    drafted = api.run(ASK, True)
    assert drafted["choices"][0]["token_ids"] == plain["choices"][0]["token_ids"]
    assert drafted["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] > 0
    assert drafted["usage"]["extra"]["drafted_tokens"] > 0

    # A restart brings it back, and a load without one does not.
    assert api.run("return (await inpage.restart()).draft") == draft
    assert api.run("return (await inpage.load(given)).draft", NAME) is None
    missing = api.fails("return inpage.load(given, { draft: 'nowhere' })", NAME)
    assert "nowhere" in missing["message"]
    assert api.run("return inpage.loaded.name") == NAME
