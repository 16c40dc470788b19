"""ExecuTorch files in the page: of the site, dropped, chosen; told about, run, chatted with."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.conftest import serving
from tests.pte.counting import (
    counting_decoder,
    doubling,
    large_table,
    lookup,
    unsupported_file,
    write_decoder,
    write_tokenizer,
)
from tests.runners import HEAP, MAX_GROWTH, PageRunner
from tests.web.user import User

pytestmark = pytest.mark.browser

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LARGE = "models/Large/table.pte"
ROWS = [0, 1, 31_337, 49_999]
LOAD_LARGE = f"own = await load('{LARGE}')"
RUN_LARGE = f"""
(found,) = await {{name}}.run([np.array([{ROWS}]), np.array([0])])
{{name}}.unload()
[list(found.shape), found[0, :, :3].tolist(), float(found[0, -1, -1])]
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_decoder(folder / "Counting")
    (folder / "Large").mkdir()
    write_tokenizer(folder / "Large")
    (folder / "Large" / "table.pte").write_bytes(lookup(large_table(), 8, {}))
    (folder / "Large" / "model.pte").write_bytes(doubling())
    return folder


@pytest.fixture(scope="module")
def user(browser: Browser, models: Path) -> Iterator[User]:
    """Open one page for all of them."""
    with serving("--models", str(models)) as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        user.open()
        yield user
        context.close()


@pytest.fixture
def python(user: User) -> Callable[[str], Any]:
    return PageRunner(user.page).python


@pytest.fixture
def dialog(user: User) -> Iterator[Locator]:
    """Return the dialog that a drop shows, and close it at the end."""
    yield user.page.get_by_role("dialog", name="Your file")
    user.page.keyboard.press("Escape")


def tokenizer_files(folder: Path) -> dict[str, bytes]:
    names = ("tokenizer.json", "tokenizer_config.json")
    return {name: (folder / name).read_bytes() for name in names}


# Large files -------------------------------------------------------------------------------------


def check_large(result: list[Any], growth: int) -> None:
    table = large_table()
    assert result == [[1, len(ROWS), 512], table[ROWS, :3].tolist(), float(table[-1, -1])]
    assert 0 <= growth < MAX_GROWTH


def test_a_large_file_of_the_site_streams(python: Callable[[str], Any]) -> None:
    before = python(HEAP)
    python(LOAD_LARGE)
    growth = python(HEAP) - before
    check_large(python(RUN_LARGE.format(name="own")), growth)


def test_a_large_file_streams_from_a_host_without_ranges(
    user: User, python: Callable[[str], Any]
) -> None:
    asked = []

    def without_range(route: Route) -> None:
        headers = route.request.headers
        asked.append(headers.pop("range"))
        route.continue_(headers=headers)

    user.page.route(f"**/{LARGE}", without_range)
    before = python(HEAP)
    python(LOAD_LARGE)
    growth = python(HEAP) - before
    user.page.unroute(f"**/{LARGE}")
    assert asked, "ranges are asked for"
    check_large(python(RUN_LARGE.format(name="own")), growth)


def test_a_large_file_of_the_users_streams(
    user: User, models: Path, python: Callable[[str], Any], dialog: Locator
) -> None:
    before = python(HEAP)
    user.page.locator("#files").set_input_files(models / "Large" / "table.pte")
    expect(dialog).to_contain_text("It is loaded")
    expect(dialog).to_contain_text("1 constant, 102 MB")
    growth = python(HEAP) - before
    check_large(python(RUN_LARGE.format(name="graph")), growth)


# What a drop shows -------------------------------------------------------------------------------


def test_a_program_is_told_about_and_at_hand_in_python(
    user: User, python: Callable[[str], Any], dialog: Locator
) -> None:
    user.drop({"twice.pte": doubling()})
    expect(dialog).to_contain_text("It is loaded")
    expect(dialog.get_by_role("heading", name="twice.pte")).to_be_visible()
    for cells in ("input 0 float32 4", "output 0 float32 4", "aten.add.Tensor 1"):
        expect(dialog.get_by_role("row", name=cells)).to_be_visible()
    assert python("(await graph.run([np.arange(4, dtype=np.float32)]))[0].tolist()") == [0, 2, 4, 6]
    assert user.faults_of_access() == []


def test_what_is_not_supported_is_listed(user: User, dialog: Locator) -> None:
    user.drop({"other.pte": unsupported_file()})
    expect(dialog).to_contain_text("It cannot be loaded")
    items = dialog.get_by_role("listitem").all_inner_texts()
    assert items == [
        "aten.convolution.default",
        "aten::cumsum (outside the delegate)",
        "the backend XnnpackBackend",
    ]
    expect(dialog.get_by_role("row", name="aten.convolution.default 2")).to_be_visible()
    expect(user.page.locator("#loadError")).to_be_empty()


def test_what_is_broken_says_so(user: User, dialog: Locator) -> None:
    user.drop({"torn.pte": counting_decoder()[:3000]})
    expect(dialog).to_contain_text("It cannot be loaded: torn.pte")
    user.drop({"letter.pte": b"Dear user, this is not a program, as you can see."})
    expect(dialog).to_contain_text("letter.pte is not a .pte file")
    user.drop({"alone.ptd": b"x"})
    expect(dialog).to_contain_text("or one .pte file with its .ptd files")


def test_a_hostile_name_is_shown_as_text(user: User, dialog: Locator) -> None:
    hostile = "<img src=x onerror=alert(1)> **bold** `code` | [x](https://x.org/)"
    user.drop({f"{hostile}.pte": doubling()})
    shown = f"{hostile.translate({ord('`'): '·', ord('|'): '·'})}.pte"
    expect(dialog.get_by_role("heading", level=3)).to_have_text(shown)
    assert dialog.locator("img, a, strong:text('bold')").count() == 0


def test_a_text_that_is_dragged_stays_the_browsers(user: User) -> None:
    stays = """() => {
        const transfer = new DataTransfer();
        transfer.setData("text/plain", "words");
        const flags = {dataTransfer: transfer, bubbles: true, cancelable: true};
        return document.body.dispatchEvent(new DragEvent("drop", flags));
    }"""
    assert user.page.evaluate(stays) is True


# Chatting ----------------------------------------------------------------------------------------


def answers_alphabet(user: User) -> None:
    assert user.text_of(user.ask("Hi")) == ALPHABET


def test_a_dropped_decoder_and_its_tokenizer_chat(
    user: User, models: Path, python: Callable[[str], Any], dialog: Locator
) -> None:
    user.drop({"counts.pte": counting_decoder(), **tokenizer_files(models / "Counting")})
    expect(dialog).to_contain_text("You can chat with it now")
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#modelName")).to_have_text("counts")
    user.choose(temperature="0", repetition_penalty="1")
    answers_alphabet(user)
    assert python("[graph is model.graph, engine.module, model.context]") == [True, None, 255]
    python("engine.device.destroy()")
    answers_alphabet(user)  # the file is read again, from the user's disk


def test_a_decoder_without_its_tokenizer_says_what_it_lacks(user: User, dialog: Locator) -> None:
    user.drop({"alone.pte": counting_decoder()})
    expect(dialog).to_contain_text("To chat with it, give its tokenizer.json")
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#modelName")).to_have_text("counts")  # it stays


def test_a_model_folder_of_the_site_chats(user: User) -> None:
    user.page.evaluate("inpage.unload().then(() => inpage.load('Counting')).then(() => null)")
    user.new_chat()
    expect(user.page.locator("#modelName")).to_have_text("Counting")
    answers_alphabet(user)


def test_a_folders_address_serves_as_well(user: User) -> None:
    described = user.page.evaluate("inpage.load('models/Counting/')")
    assert (described["name"], described["context"]) == ("Counting", 255)
    assert described["facts"].startswith("40.5 kB · context of 255 tokens")
    refusal = "inpage.load('models/Large/').catch(({ message }) => message)"
    assert "is not a decoder" in user.page.evaluate(refusal)


def test_the_site_lists_such_folders(user: User) -> None:
    listed = {entry["name"]: entry["path"] for entry in user.page.evaluate("inpage.models()")}
    assert listed == {"Counting": "models/Counting/model.pte", "Large": "models/Large/model.pte"}


def test_some_methods_alone(python: Callable[[str], Any]) -> None:
    code = "[(await load('models/Large/model.pte', methods=names)).methods for names in ([], None)]"
    assert python(code) == [[], ["forward"]]


def test_a_missing_file_is_named(user: User) -> None:
    code = "await load('models/nothing.pte')"
    ask = f"inpage.python({json.dumps(code)}).catch(({{ message }}) => message)"
    assert "models/nothing.pte answered 404" in user.page.evaluate(ask)
