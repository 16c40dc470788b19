"""The text of PDF files goes with a message; what cannot be read says why, and holds nothing up."""

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.web.user import Desk, User, until

pytestmark = pytest.mark.browser

BOUNDS = """bounds => import(new URL("ui/files/contents.js", document.baseURI))
    .then(({pdfLimits}) => { Object.assign(pdfLimits, bounds); })"""
REFUSED = """addEventListener("securitypolicyviolation", ({violatedDirective, blockedURI}) => {
    (globalThis.refused ??= []).push(`${violatedDirective} ${blockedURI}`);
})"""
GENEROUS = {"pages": 1000, "characters": 1_000_000, "milliseconds": 1e9}
# What Chrome 127 has not, nor Safari 26 and Firefox 141.
OLD_BROWSER = """
for (const [where, name] of [
    [Map.prototype, "getOrInsertComputed"], [WeakMap.prototype, "getOrInsertComputed"],
    [Promise, "try"], [Math, "sumPrecise"], [Uint8Array.prototype, "toHex"],
    [Uint8Array, "fromBase64"], [Uint8Array.prototype, "toBase64"],
]) delete where[name];
"""
FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
RESOURCES = "/Resources << /Font << /F 3 0 R >> {} >>"
UNPACKED = 66 << 20  # bytes; one part of a file may have fewer
NESTED = 40  # forms, each of which draws the next one twice


def text_at(top: int, text: str) -> str:
    return f"BT /F 12 Tf 72 {top} Td ({text}) Tj ET\n"


def stream(content: str, entries: str = "") -> str:
    return f"<< /Length {len(content)} {entries} >>\nstream\n{content}\nendstream"


def pdf(
    pages: list[str],
    *,
    extra: list[str] | None = None,
    xobjects: str = "",
    trailer: str = "",
    catalogue: str = "",
) -> bytes:
    """Write a file with these contents of pages; `extra` objects are numbered from 4 on."""
    objects = [f"<< /Type /Catalog /Pages 2 0 R {catalogue} >>", "", FONT, *(extra or [])]
    kids = []
    for content in pages:
        kids.append(f"{len(objects) + 1} 0 R")
        resources = RESOURCES.format(xobjects)
        contents = f"/Contents {len(objects) + 2} 0 R"
        box = "/MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} {resources} {contents} >>")
        objects.append(stream(content))
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(kids)}] >>"
    written, places = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{len(written)}\n%%EOF\n"
    return f"{written}xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode("latin-1")


def endless() -> bytes:
    """Write a few lines that draw a word more often than anybody can wait for."""
    first = 4
    form = "/Subtype /Form /BBox [0 0 9 9]"
    nexts = [f"/Resources << /XObject << /X {first + at + 1} 0 R >> >>" for at in range(NESTED)]
    forms = [stream("/X Do /X Do", f"{form} {resources}") for resources in nexts]
    leaf = stream(text_at(0, "x"), f"{form} {RESOURCES.format('')}")
    return pdf(["/X Do"], extra=[*forms, leaf], xobjects=f"/XObject << /X {first} 0 R >>")


def bomb() -> bytes:
    """Return a small file whose first page unpacks to more than anybody wants to hold."""
    packed = zlib.compress(b" " * UNPACKED + text_at(700, "Behind the blanks").encode())
    entries = f"/Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode {RESOURCES.format('')}"
    form = stream(packed.decode("latin-1"), entries)
    pages = ["/X Do", text_at(700, "The next page")]
    return pdf(pages, extra=[form], xobjects="/XObject << /X 4 0 R >>")


def active() -> bytes:
    """Return a file that would run scripts, start programs, open pages and send forms."""
    script = "<< /S /JavaScript /JS (globalThis.hasRun = true; app.alert\\(1\\);) >>"
    others = " ".join(
        f"<< /Type /Annot /Subtype /Link /Rect [0 0 612 792] /A {action} >>"
        for action in (
            script,
            "<< /S /URI /URI (https://example.com/opened) >>",
            "<< /S /Launch /F (calc.exe) >>",
            "<< /S /GoToR /F (https://example.com/other.pdf) /D [0 /Fit] >>",
            "<< /S /SubmitForm /F (https://example.com/form) >>",
            "<< /S /ImportData /F (https://example.com/data.fdf) >>",
        )
    )
    form = f"<< /Fields [] /XFA [(template) 4 0 R] /AA << /O {script} >> >>"
    names = (
        f"<< /JavaScript << /Names [(all) {script}] >> /EmbeddedFiles << /Names [(a) 5 0 R] >> >>"
    )
    xfa = "<template><script>globalThis.hasRun = true</script></template>"
    file = "<< /Type /Filespec /F (virus.exe) /EF << /F 6 0 R >> >>"
    catalogue = f"/OpenAction {script} /AA << /WC {script} >> /Names {names} /AcroForm {form}"
    extra = [stream(xfa), file, stream("MZ", "/Type /EmbeddedFile")]
    found = pdf([text_at(700, "Harmless")], extra=extra, catalogue=catalogue)
    return found.replace(b"/Parent 2 0 R", f"/Parent 2 0 R /Annots [{others}]".encode())


def encrypted() -> bytes:
    keys = f"/O <{'11' * 32}> /U <{'22' * 32}>"
    lock = f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 {keys} >> /ID [<33><33>]"
    return pdf([text_at(700, "secret")], trailer=lock)


@pytest.fixture(scope="module")
def tab(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    user = desk.tab(script=REFUSED)
    expect(user.page.get_by_role("button", name="Attach files")).to_be_visible()
    user.page.evaluate(BOUNDS, GENEROUS)
    yield user
    assert user.complaints == []
    assert user.page.evaluate("globalThis.refused ?? []") == []
    desk.context.close()


def attach(user: User, name: str, content: bytes) -> None:
    file: Any = {"name": name, "mimeType": "application/pdf", "buffer": content}
    user.page.locator("#attachFiles").set_input_files(file)


def read_by_the_model(user: User) -> str:
    content: str = user.page.evaluate("inpage.asked.messages.at(-1).content")
    return content


def readers(user: User) -> int:
    return sum("pdf_worker" in worker.url for worker in user.page.workers)


def test_the_text_of_a_pdf_goes_with_the_message(tab: User) -> None:
    two_lines = text_at(700, "A first line,") + text_at(680, "and \\(a second\\) one.")
    attach(tab, "Paper.PDF", pdf([two_lines, text_at(700, "The next page")]))
    row = tab.page.get_by_role("list", name="Attached to the message").get_by_role("listitem")
    expect(row).to_have_text("Paper.PDF · 2 pages · 1 token")
    assert readers(tab) == 0
    tab.ask("Sum it up")
    assert read_by_the_model(tab) == (
        "Paper.PDF:\n\n```text\nA first line,\nand (a second) one.\n\nThe next page\n```"
        "\n\nSum it up"
    )


def test_the_oldest_browsers_that_start_the_page_read_a_pdf(desk: Desk) -> None:
    def hide_the_new(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=OLD_BROWSER + answer.text())

    user = desk.tab(script=OLD_BROWSER)
    user.page.route("**/pdf-worker.js", hide_the_new)
    attach(user, "paper.pdf", pdf([text_at(700, "A line")]))
    expect(user.page.locator("#attached li")).to_have_text("paper.pdf · 1 page · 1 token")
    assert user.complaints == []


@pytest.mark.parametrize(
    ("bounds", "told"),
    [({"pages": 2}, "the first 2 of 3 pages"), ({"characters": 4}, "the first 1 of 3 pages")],
)
def test_a_long_pdf_is_read_as_far_as_its_bounds(
    tab: User, bounds: dict[str, int], told: str
) -> None:
    tab.page.evaluate(BOUNDS, bounds)
    attach(tab, "long.pdf", pdf([text_at(700, f"Page {number}") for number in (1, 2, 3)]))
    expect(tab.page.locator("#attached li")).to_have_text(f"long.pdf · {told} · 1 token")
    tab.page.get_by_role("button", name="Remove long.pdf").click()
    tab.page.evaluate(BOUNDS, GENEROUS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (pdf(["0 0 100 100 re f"]), "it contains no text: it may be a scan"),
        (encrypted(), "it is protected by a password"),
        (b"%PDF-1.7\nand nothing else", "it is damaged, or not a PDF file"),
        (b"", "it is damaged, or not a PDF file"),
    ],
)
def test_what_cannot_be_read_says_why(tab: User, content: bytes, told: str) -> None:
    attach(tab, "odd.pdf", content)
    expect(tab.notices).to_contain_text(f"odd.pdf was not attached: {told}")
    expect(tab.page.locator("#attached li")).to_have_count(0)
    assert readers(tab) == 0
    tab.dismiss_notices()


def test_a_pdf_without_end_holds_nothing_up(tab: User) -> None:
    tab.page.evaluate(BOUNDS, {"characters": 1e12})
    attach(tab, "endless.pdf", endless())
    row = tab.page.locator("#attached li")
    expect(row).to_have_text("Reading endless.pdf…")
    until(tab.page, lambda: readers(tab), "somebody reads it")
    tab.composer.fill("Hello")
    tab.composer.press("Enter")
    expect(tab.notices).to_contain_text("A file is still being read")
    expect(tab.composer).to_have_value("Hello")
    row.get_by_role("button", name="Remove endless.pdf").click()
    expect(row).to_have_count(0)
    until(tab.page, lambda: not readers(tab), "whoever read it has ended")
    tab.composer.fill("")
    tab.dismiss_notices()
    tab.page.evaluate(BOUNDS, {"milliseconds": 500})
    attach(tab, "endless.pdf", endless())
    expect(tab.notices).to_contain_text("endless.pdf was not attached: reading it takes too long")
    tab.dismiss_notices()
    tab.page.evaluate(BOUNDS, GENEROUS)


def test_what_unpacks_to_too_much_is_left_out(tab: User) -> None:
    content = bomb()
    assert len(content) < 100_000
    attach(tab, "bomb.pdf", content)
    expect(tab.page.locator("#attached li")).to_have_text("bomb.pdf · 2 pages · 1 token")
    tab.ask("Sum it up")
    assert "The next page" in read_by_the_model(tab)
    assert "Behind the blanks" not in read_by_the_model(tab)


def test_nothing_in_a_pdf_is_run_opened_or_sent(tab: User) -> None:
    pages, asked = len(tab.page.context.pages), len(tab.requests)
    attach(tab, "active.pdf", active())
    expect(tab.page.locator("#attached li")).to_have_text("active.pdf · 1 page · 1 token")
    tab.ask("Sum it up")
    assert read_by_the_model(tab) == "active.pdf:\n\n```text\nHarmless\n```\n\nSum it up"
    assert tab.page.evaluate("globalThis.hasRun") is None
    assert len(tab.page.context.pages) == pages
    assert all(url.startswith(tab.url) for url in tab.requests[asked:])


def test_a_reader_that_does_not_arrive_is_told(tab: User) -> None:
    tab.page.route("**/pdf-worker.js", lambda route: route.abort())
    attach(tab, "paper.pdf", pdf([text_at(700, "Text")]))
    expect(tab.notices).to_contain_text("the PDF reader could not be loaded")
    tab.page.unroute("**/pdf-worker.js")
    tab.dismiss_notices()
