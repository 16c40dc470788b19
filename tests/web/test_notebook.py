"""The notebook beside the chat, as somebody who experiments uses it."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import User, until

pytestmark = pytest.mark.browser

UNHEARD = 100  # milliseconds: a list that has just come takes no Enter meant for the text
# Without an end, and without a moment for anybody else.
PRINTS_FOR_EVER = """n = 0
while True:
    n += 1
    if n < 4:
        print("round", n)
"""
# Pages that a cell shows are anybody's.
HOSTILE = """
class Page:
    def _repr_html_(self):
        return '''<b>fine</b><script>parent.evil = 1</script><img src=x onerror="parent.evil = 1">
            <form action="https://example.org"><input></form><a href="javascript:evil=1">x</a>'''
Page()
"""


class Notebook:
    def __init__(self, user: User) -> None:
        self.user = user
        self.page = user.page
        self.dock = self.page.get_by_role("complementary", name="Look inside")
        self.cells = self.dock.get_by_role("region", name="Code cell")

    def button(self, name: str) -> Locator:
        return self.dock.get_by_role("button", name=name, exact=True)

    def exported(self, button: str) -> str:
        """Return what a button of the notebook's own exports."""
        with self.page.expect_download() as download:
            self.button(button).click()
        return download.value.path().read_text()

    def run(self, code: str) -> Locator:
        """Run code in the last cell and return it; without waiting for its end."""
        cell = self.cells.last
        cell.get_by_role("textbox", name="Code").fill(code)
        cell.get_by_role("button", name="Run", exact=True).click()
        return cell

    def output_of(self, code: str) -> Locator:
        """Run code in the last cell, wait for its end and return what it shows."""
        cell = self.run(code)
        expect(cell.get_by_role("button", name="Run", exact=True)).to_be_visible()
        return cell.get_by_role("log")


@pytest.fixture(scope="module")
def loaded(user: User) -> User:
    """Stop soon breaks off what does not answer."""
    user.be_patient(cancel=100)
    user.page.get_by_role("button", name="Look inside").click()
    user.page.get_by_role("tab", name="Notebook").click()
    return user


@pytest.fixture
def notebook(loaded: User) -> Iterator[Notebook]:
    """Show the empty notebook of a new chat."""
    loaded.new_chat()
    notebook = Notebook(loaded)
    expect(notebook.cells).to_have_count(1)
    yield notebook
    assert loaded.complaints == []


def test_cells_keep_their_output_and_share_names(notebook: Notebook) -> None:
    expect(notebook.output_of("x = 20\nprint('twenty')\nx + 1")).to_have_text("twenty 21")
    notebook.button("Add code").click()
    expect(notebook.output_of("x * 2")).to_have_text("40")
    expect(notebook.cells.first.get_by_role("log")).to_have_text("twenty 21")


def test_output_streams_and_any_loop_is_stopped(notebook: Notebook) -> None:
    cell = notebook.run(PRINTS_FOR_EVER)
    expect(cell.get_by_role("log")).to_have_text("round 1\nround 2\nround 3")
    cell.get_by_role("button", name="Stop").click()
    expect(cell.get_by_role("status")).to_have_text("Stopped.")
    for waiting in ("await asyncio.sleep(10**6)", "time.sleep(10**6)", "input()"):
        cell = notebook.run(f"import asyncio, time\nprint('waits')\n{waiting}")
        expect(cell.get_by_role("log")).to_contain_text("waits")
        cell.get_by_role("button", name="Stop").click()
        expect(cell.get_by_role("status")).to_have_text("Stopped.")
    expect(notebook.output_of("n > 3")).to_have_text("True")


def test_code_asks_and_sleeps(notebook: Notebook) -> None:
    cell = notebook.run(
        "import time\nname = input('Your name? ')\ntime.sleep(0.01)\nprint('Hello', name)"
    )
    cell.get_by_label("Your name?").fill("Ada")
    cell.get_by_label("Your name?").press("Enter")
    expect(cell.get_by_role("log")).to_have_text("Your name? Ada\nHello Ada")


def test_values_are_shown_as_what_they_are(notebook: Notebook) -> None:
    output = notebook.output_of("np.arange(400, dtype=np.float32).reshape(20, 20)")
    expect(output).to_contain_text("float32 · 20 × 20 · 0 … 399")
    assert output.get_by_role("row").count() == 7
    output = notebook.output_of("[{'layer': 0, 'norm': 1.5}, {'layer': 1, 'norm': 2.5}]")
    expect(output.get_by_role("columnheader", name="norm")).to_be_visible()
    expect(notebook.output_of("plot.lines([1, 3, 2], title='Zigzag')")).to_contain_text("Zigzag")
    expect(output.get_by_role("img", name="Zigzag")).to_be_visible()
    output = notebook.output_of("for i in progress(range(5), 'layers'): pass")
    expect(output.get_by_role("progressbar", name="layers")).to_have_attribute("value", "5")


def test_pages_that_code_makes_can_do_nothing(notebook: Notebook) -> None:
    output = notebook.output_of(HOSTILE)
    expect(output.locator("b")).to_have_text("fine")
    assert output.locator("script, form, input, [onerror], [href]").count() == 0
    assert notebook.page.evaluate("globalThis.evil") is None


def test_a_fault_points_to_the_users_line(notebook: Notebook) -> None:
    output = notebook.output_of("def f():\n    return 1 / 0\nf()")
    expect(output).to_contain_text("ZeroDivisionError: division by zero")
    expect(output).to_contain_text("return 1 / 0")
    assert "pyodide" not in output.inner_text()
    output = notebook.output_of("import no_such_module")
    expect(output).to_contain_text("%pip install no_such_module")


def test_the_engine_is_at_hand_and_says_what_it_is(notebook: Notebook) -> None:
    for code, words in {
        "print(model)": "Model('Toy', context=512",
        "print(graph)": "Graph('Toy'",
        "print(engine)": "Engine(Model(",
        "print(device)": "Device('cpu'",
        "print(model.session)": "tokens in the cache",
    }.items():
        expect(notebook.output_of(code)).to_contain_text(words)


def test_the_chat_goes_on_from_a_cell(notebook: Notebook) -> None:
    output = notebook.output_of(
        "answer = await chat.send('fox and hound')\n"
        "[each['role'] for each in chat.messages], answer == chat.messages[-1]['content']"
    )
    expect(output).to_have_text("(['user', 'assistant'], True)")
    expect(notebook.user.questions).to_have_text("fox and hound")


def test_names_are_completed_from_the_live_interpreter(notebook: Notebook) -> None:
    notebook.output_of("model_of_mine = model")
    editor = notebook.cells.last.get_by_role("textbox", name="Code")
    editor.fill("")
    editor.press_sequentially("model_of_mine.tokeni")
    expect(notebook.dock.get_by_role("option", name="tokenizer")).to_be_visible()
    notebook.page.wait_for_timeout(UNHEARD)
    editor.press("Enter")
    expect(editor).to_have_text("model_of_mine.tokenizer")
    editor.press("Escape")
    expect(notebook.dock.get_by_role("tab", name="Notebook")).to_be_focused()


def test_each_chat_has_its_own_and_keeps_it(notebook: Notebook) -> None:
    page, user = notebook.page, notebook.user
    expect(notebook.output_of("print('of the first chat')")).to_contain_text("first")

    def kept() -> list[str]:
        return [record.get("notebook", "") for record in user.records()]

    until(page, lambda: any("of the first chat\\n" in text for text in kept()), "it is kept")
    user.new_chat()
    expect(notebook.cells.first.get_by_role("log")).to_have_text("")
    user.titles.first.click()
    expect(notebook.cells.first.get_by_role("log")).to_contain_text("of the first chat")
    exported = json.loads(user.exported("Export").read_text())
    assert "of the first chat" in exported["chats"][0]["notebook"]
    user.import_text(json.dumps(exported))
    expect(notebook.cells.first.get_by_role("log")).to_contain_text("of the first chat")


def test_it_is_exported_and_imported(notebook: Notebook) -> None:
    notebook.output_of("print('kept')\n6 * 7")
    notebook.button("Add text").click()
    notebook.dock.get_by_role("region", name="Text cell").dblclick()
    notebook.dock.get_by_role("textbox", name="Text").fill("# A heading")
    book = json.loads(notebook.exported("Export as .ipynb"))
    assert (book["nbformat"], [cell["cell_type"] for cell in book["cells"]]) == (
        4,
        ["code", "markdown"],
    )
    first, second = book["cells"][0]["outputs"]
    assert (first["output_type"], first["text"]) == ("stream", ["kept\n"])
    assert second["data"]["text/plain"] == ["42"]
    script = notebook.exported("Export as .py")
    assert script == "# %%\nprint('kept')\n6 * 7\n\n# %% [markdown]\n# # A heading\n"
    for name, text in {"book.ipynb": json.dumps(book), "book.py": script}.items():
        notebook.user.new_chat()
        file = {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
        notebook.dock.get_by_label("Import").last.set_input_files(file)  # type: ignore[arg-type]
        expect(notebook.dock.get_by_role("heading", name="A heading")).to_be_visible()
        expect(notebook.cells).to_have_count(1)
    notebook.button("Run all").click()
    expect(notebook.cells.first.get_by_role("log")).to_have_text("kept 42")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(notebook: Notebook, scheme: str) -> None:
    notebook.output_of("print('printed')\nnp.zeros((3, 3))")
    notebook.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for width in (1280, 360):
        notebook.page.set_viewport_size({"width": width, "height": 740})
        assert notebook.user.faults_of_access() == [], f"{width} pixels wide"
    notebook.page.set_viewport_size({"width": 1280, "height": 740})


@pytest.mark.thorough
def test_matplotlib_and_pandas_come_from_this_site(notebook: Notebook) -> None:
    before = len(notebook.user.requests)
    output = notebook.output_of(
        "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('A figure')\nplt.show()"
    )
    expect(output.get_by_role("img", name="A figure")).to_be_visible()
    output = notebook.output_of("import pandas\npandas.DataFrame({'a': [1, 2]})")
    expect(output.get_by_role("columnheader", name="a")).to_be_visible()
    url = notebook.user.url
    assert all(each.startswith((url, "data:")) for each in notebook.user.requests[before:])
