"""The quantisations people have, in the page: from the Hub and dropped, with torch's tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from export.gguf_source import GgufSource
from export.reference import greedy, reference_decoder
from export.sources import Quantisation
from tests.conftest import serving
from tests.gguf.mixes import ARCHITECTURES, MIXES, write
from tests.hub.imitation import Imitation
from tests.web.user import User

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.thorough]

REPOSITORY = "toys/mixes-GGUF"
MIXED = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "Q4_0", "IQ4_XS", "F16")
STEPS, CLEAR_MARGIN = 8, 1e-3
PROMPT = [5, 100, 7, 200, 31, 8, 250, 9, 44]
GREEDY = f"""inpage.completions.create({{
    prompt_token_ids: {PROMPT}, temperature: 0, max_tokens: {STEPS}, ignore_eos: true,
}}).then(({{ choices }}) => choices[0].token_ids)"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mixes")
    made = {}
    for family in ARCHITECTURES:
        for mix in MIXED:
            path = made[f"{family}-{mix}"] = folder / f"{family}-{mix}.gguf"
            path.write_bytes(write(family, MIXES[mix]))
    return made


@pytest.fixture(scope="module")
def user(
    browser: Browser, hub: Imitation, files: dict[str, Path], tmp_path_factory: Any
) -> Iterator[User]:
    """Open one page for all of them, which may ask the Hub."""
    hub.put(REPOSITORY, **{f"{name}__gguf": path.read_bytes() for name, path in files.items()})
    models = str(tmp_path_factory.mktemp("none"))
    with serving("--models", models, "--hub", hub.hub, hub.cdn) as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        user.page.goto(address)
        user.page.evaluate("inpage.ready.then(() => null)")
        user.page.evaluate(f"void inpage.hubFiles('{REPOSITORY}')")
        asked = user.page.get_by_role(
            "dialog", name="Allow this page to contact the Hugging Face Hub?"
        )
        asked.get_by_role("button", name="Allow").click()
        yield user
        context.close()


def torchs(path: Path) -> list[int]:
    """Return as many tokens as torch itself is sure of."""
    source = GgufSource.open(path, Quantisation("none"))
    tokens, margins = greedy(reference_decoder(source, source.decoder_config(None)), PROMPT, STEPS)
    clear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), STEPS)
    assert clear > 3, "a case that compares next to nothing"
    return tokens[:clear]


def drop(user: User, path: Path) -> None:
    user.drop({f"dropped-{path.name}": path.read_bytes()})
    expect(user.notices).to_contain_text(f"dropped-{path.stem} is ready.")
    expect(user.page.locator("#modelName")).to_have_text(f"dropped-{path.stem}")


FAMILIES = tuple(ARCHITECTURES)
# They take turns to be dropped and to come from the Hub: tests/gguf has each natively.
LOADS = [(FAMILIES[place % len(FAMILIES)], mix, bool(place % 2)) for place, mix in enumerate(MIXED)]


@pytest.mark.parametrize(("family", "mix", "is_dropped"), LOADS)
def test_torch_s_tokens(
    family: str, mix: str, is_dropped: bool, user: User, files: dict[str, Path]
) -> None:
    name = f"{family}-{mix}"
    if is_dropped:
        drop(user, files[name])
    else:
        user.page.evaluate(f"inpage.load('hf:{REPOSITORY}/{name}.gguf').then(() => null)")
    wanted = torchs(files[name])
    assert user.page.evaluate(GREEDY)[: len(wanted)] == wanted
