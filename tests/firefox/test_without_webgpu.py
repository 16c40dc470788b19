"""A first minute in Firefox as Linux ships it, without WebGPU: the processor answers."""

from pathlib import Path

import pytest

from tests.firefox.marionette import Firefox
from tests.firefox.test_firefox import ENTER, NOTES, TALK
from tests.toy_model import TOKENS, greedy_of

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.thorough]

ASK = """const request = {prompt_token_ids: given, temperature: 0, ignore_eos: true};
const {choices: [choice]} = await inpage.completions.create({...request, max_tokens: TOKENS});
return choice.token_ids;""".replace("TOKENS", str(TOKENS))


def test_a_first_minute(firefox: Firefox, choosing_site_url: str, toy_model: Path) -> None:
    with firefox.without("dom.webgpu.enabled"):
        firefox.go(choosing_site_url)
        assert firefox.run("return (await inpage.ready).device.kind") == "cpu"
        assert firefox.run("return document.querySelector('#failure').hidden") is True
        firefox.until("!document.querySelector('#load').disabled")
        status = firefox.run("return document.querySelector('#status').innerText")
        assert "Running on your processor (" in status
        firefox.click("#load")
        firefox.until("document.body.dataset.model === 'ready'")
        firefox.run(TALK)
        firefox.type("#draft", f"Am I heard?{ENTER}")
        firefox.until(f"{NOTES}[0]?.includes('60 tokens')")
        greedy = greedy_of(toy_model)
        assert firefox.run(ASK, greedy.prompt) == greedy.tokens
