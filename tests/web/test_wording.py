"""The page's wording: each text and message is in every language's table, with its facts.

None goes around the tables.
"""

import ast
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from py_runtime.app.answer_outcome import outcome
from py_runtime.app.load_progress import LoadMeter
from py_runtime.app.model_facts import describe_offer, fit, model_messages
from py_runtime.base.errors import ContextLengthError, GpuOutOfMemoryError
from py_runtime.base.messages import ENGLISH, FORMATS, facts_of, message
from py_runtime.base.messages import worded as in_english
from py_runtime.base.progress import DOWNLOAD
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.generation.pieces import Piece, Usage
from py_runtime.gpu import GPU
from tests.web import wording
from tools.files import ROOT

LANGUAGES = sorted(path.stem for path in wording.TABLES.glob("*.js"))
OTHERS = [name for name in LANGUAGES if name != "en"]
# Where scripts put texts that people read, to the end of the statement or line.
SHOWN = re.compile(
    r"\b(?:(?:textContent|ariaLabel|title|placeholder|status|note)\s*(?::|=(?!=))"
    r"|(?:notify|setCustomValidity|check|lose|leave|heading)\()[^;\n]*"
)
# There, a literal that is the text itself, or one of two, goes around the tables.
LITERAL = re.compile(r"""(?:^\w+\(|(?<!=)(?:= |\? |: |\|\| |, ))("[^"]*"|`[^`]*`)""")
NAMES = re.compile(r"\b(?:GGUF|inpage)\b")
VALUE = re.compile(r"\$\{[^}]*\}")
FACT = re.compile(r"\{(\w+)(?::([^}]*))?\}")
DECIMALS = (".1f", ".0%")
OF_PANELS = ("autoencoder_", "schema_")  # codes of errors that only a panel or dialog shows


@pytest.mark.parametrize("name", OTHERS)
def test_a_language_has_all_texts_and_no_others(name: str) -> None:
    texts = wording.table(name)["texts"]
    used = wording.of_html() | wording.of_scripts()
    assert texts.keys() - used == set(), "nothing says these any more"
    assert used - texts.keys() == set(), f"not in web/ui/languages/{name}.js"


@pytest.mark.parametrize("name", OTHERS)
def test_a_translation_keeps_values_and_forms(name: str) -> None:
    for english, other in wording.table(name)["texts"].items():
        ours, theirs = english.split("|"), other.split("|")
        assert len(ours) == len(theirs), english
        for form, translated in zip(ours, theirs, strict=True):
            assert translated.strip() == translated != "", english
            placeholders = [
                sorted(wording.PLACEHOLDER.findall(text)) for text in (form, translated)
            ]
            assert placeholders[0] == placeholders[1], english


# The engine's messages ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_has_every_code_and_no_others(name: str) -> None:
    """Check the codes that the engine can send, and those that the page makes itself.

    Errors of panels and dialogs come with the engine's English, which serves the page: its own
    table is among the scripts of the start.
    """
    sent = ENGLISH.keys() | wording.codes_of_the_page()
    if name == "en":
        sent = {code for code in sent if not code.startswith(OF_PANELS)}
    codes = wording.table(name)["messages"].keys()
    assert sent - codes == set(), f"not in web/ui/languages/{name}.js"
    assert codes - sent == set(), "nothing sends these any more"


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_template_uses_only_the_facts_that_its_code_has(name: str) -> None:
    for code, template in wording.table(name)["messages"].items():
        used = {fact for fact, _ in FACT.findall(template)}
        declared = facts_of(ENGLISH[code]) if code in ENGLISH else frozenset[str]()
        assert used <= declared, f"{code} in {name}"
        assert template.strip() == template != ""


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_template_formats_facts_as_the_page_can(name: str) -> None:
    for code, template in wording.table(name)["messages"].items():
        for fact, used in FACT.findall(template):
            is_plural, is_joined = used.count("|") == 1, used[:1] in (",", ";")
            assert used in ("", *FORMATS, *DECIMALS) or is_plural or is_joined, (code, fact)


def sent_by_python() -> Iterator[tuple[str, set[str]]]:
    """Yield (code, facts) of each message("code", fact=…) in the runtime."""
    for path in (ROOT / "py_runtime").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "message":
                continue
            if isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), {each.arg for each in node.keywords if each.arg}


def test_the_engine_sends_codes_that_are_declared_with_their_facts() -> None:
    sent = list(sent_by_python())
    assert len(sent) > 40
    for code, facts in sent:
        assert code in ENGLISH
        assert facts <= facts_of(ENGLISH[code]), code


def around_the_tables(script: str) -> list[str]:
    literals = [text for found in SHOWN.finditer(script) for text in LITERAL.findall(found[0])]
    return [
        text for text in literals if wording.IN_LETTERS.search(NAMES.sub("", VALUE.sub("", text)))
    ]


def test_no_script_shows_words_around_the_tables() -> None:
    found = {path.name: around_the_tables(path.read_text()) for path in wording.scripts()}
    assert {name: texts for name, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "script",
    [
        'button.textContent = "Go";',
        "page.note.title = `Gone since ${day}`;",
        'notify(isThere ? t`Yes` : "No way");',
        'Object.assign(box, { ariaLabel: "Table" });',
    ],
)
def test_words_around_the_tables_are_found(script: str) -> None:
    assert around_the_tables(script)
    assert not around_the_tables("button.textContent = t`Go`; box.title = `${seconds} s`;")


def test_keys_have_numbers_for_values() -> None:
    script = "t`a ${b} c ${d({e: 1})}` + t`f|${g} ${t`h`}`"
    assert wording.keys_of(script) == ["a {0} c {1}", "f|{0} {1}", "h"]


# As pages show them ------------------------------------------------------------------------------

MODEL = {"parameters": 134_515_008, "size": 512, "context": 2048, "gpu_bytes": 205_000_000}
DEVICE: Any = SimpleNamespace(kind=GPU, limits=dict.fromkeys(NEEDED_LIMITS, 1000))


def told() -> list[Any]:
    usage = Usage(
        prompt_tokens=9,
        cached_tokens=0,
        completion_tokens=4,
        time_to_first_token_s=1.0,
        decode_tokens_per_s=1.5,
        dropped_messages=2,
    )
    return [
        model_messages(MODEL),
        fit({"largest_buffer": 2000}, DEVICE)["unfit"],
        describe_offer({"name": "Toy", "error": "torn", "stored": False}, DEVICE)["messages"],
        outcome(Piece(finish_reason="length", usage=usage), 3.5),
        ContextLengthError(5300, 2048).said,
        message("same_tokens", tokens=7, answers=1),
        message("largest_layer_difference", share=4e-6),
        message("time_left", seconds=5400),
        message("verifying_layers", share=0.314),
    ]


def test_messages_in_german() -> None:
    assert wording.worded("de-DE", told()) == [
        "134,5 Millionen Parameter · 512 Byte · Kontext von 2.048 Tokens · 205 MB Speicher",
        "Zu groß für diese GPU: Es braucht einen Puffer von 2,0 kB, und die Grenze liegt hier bei "
        "1,0 kB.",
        "Kann nicht geladen werden: torn.",
        "Höchstlänge erreicht · 4 Tokens · 3,5 s (0,5 Vorbereitung, 1,0 Lesen, 2,0 Schreiben)"
        " · 1,5 Tok/s · 2 älteste Nachrichten weggelassen",
        "dieser Chat hat 5.300 Tokens, und der Kontext des Modells fasst 2.048, die Antwort "
        "eingeschlossen: Kürze ihn, oder lass die ältesten Nachrichten weg",
        "die ersten 7 Tokens von 1 Antwort sind gleich",
        "die größte Abweichung einer Schicht ist 0,00040 %",
        "noch 1,5 h",
        "Schichten werden geprüft: 31 %",
    ]


def test_messages_in_english_are_as_in_the_terminal() -> None:
    same = [each for each in told() if each != ContextLengthError(5300, 2048).said]
    in_page = [str(text).replace("2,048", "2048").replace(" 31 %", " 31%") for text in
               wording.worded("en-US", same)]  # fmt: skip
    assert in_page == [in_english(each) for each in same]


def test_progress_in_german(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    messages: list[Any] = []
    meter = LoadMeter(lambda progress: messages.append(progress["messages"]))
    meter(DOWNLOAD, 0, 101_000_000)
    meter(DOWNLOAD, 12_300_000, 101_000_000)
    meter("shaders", 3, 12)
    assert wording.worded("de", messages) == [
        "0 Byte von 101 MB",
        "12,3 MB von 101 MB · 1,2 MB/s · noch 72 s",
        "3 von 12",
    ]


def test_an_error_shows_its_message_where_no_words_are_known() -> None:
    known = GpuOutOfMemoryError(message("no_model")).said
    assert known is not None
    errors = [
        {"reason": known["code"], "facts": known["facts"], "message": "English"},
        {"reason": "from_the_future", "facts": {}, "message": "English"},
        {"reason": "prompt_too_long", "facts": {"context": 5}, "message": "English"},
        {"message": "English"},
    ]
    assert wording.in_page("de", f"return {errors!r}.map(faultOf);") == [
        "kein Modell ist geladen: Lade zuerst eines",
        *["English"] * 3,
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        {"code": "answer_tokens", "facts": {"tokens": {"toString": 5}}},
        {"code": "constructor", "facts": {}},
        {"code": "answer_tokens", "facts": None},
        {"code": "bytes_done", "facts": {"done": "many", "total": [1, "x", []]}},
        {"facts": 5},
    ],
)
def test_a_message_that_makes_no_sense_does_no_harm(hostile: dict[str, Any]) -> None:
    (found,) = wording.worded("en", [hostile])
    assert found is None or isinstance(found, str)


def test_what_is_shown_is_said_again_in_another_language() -> None:
    """Texts with values in them, and lists of messages: from what they were made of."""
    tokens = message("answer_tokens", tokens=1234)
    code = f"""
    const line = tell([{tokens!r}, {message("answer_stopped")!r}]);
    show(t`Cancel`, t`${{inWords(1500000)}} bytes`, `  ${{line}} `, "Settings", "a stranger's");
    const before = shown();
    await speak("en");
    const english = shown();
    await speak("de");
    return [before, english, shown()];"""
    german = [
        "Abbrechen",
        "1,5 MB Byte",
        "  1.234 Tokens · Gestoppt ",
        *("Settings", "a stranger's"),
    ]
    before, english, after = wording.in_page("de", code)
    assert before == german
    assert english == [
        *("Cancel", "1.5 MB bytes", "  1,234 tokens · Stopped "),
        *("Settings", "a stranger's"),
    ]
    assert after == [*german[:3], "Einstellungen", "a stranger's"]
