"""The page's words: each is in the table of every language, and none goes around the tables."""

import re

import pytest

from py_runtime.app.completions import in_a_line
from py_runtime.app.plain_words import fit, plain_words
from py_runtime.app.shown import LoadMeter, describe_offer, facts
from py_runtime.base.errors import ContextLengthError
from py_runtime.base.progress import DOWNLOAD
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.generation.pieces import Piece, Usage
from tests.web import words

LANGUAGES = sorted(path.stem for path in words.TABLES.glob("*.js"))
SECTIONS = ("words", "said", "amounts")
# Where scripts put texts that people read, to the end of the statement or line.
SHOWN = re.compile(
    r"\b(?:(?:textContent|ariaLabel|title|placeholder|status|note)\s*(?::|=(?!=))"
    r"|(?:notify|setCustomValidity|check|lose|leave|heading)\()[^;\n]*"
)
# There, a literal that is the text itself, or one of two, goes around the tables.
LITERAL = re.compile(r"""(?:^\w+\(|(?<!=)(?:= |\? |: |\|\| |, ))("[^"]*"|`[^`]*`)""")
NAMES = re.compile(r"\b(?:GGUF|inpage)\b")
VALUE = re.compile(r"\$\{[^}]*\}")


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_has_all_words_and_no_others(name: str) -> None:
    table = words.table(name)
    assert table.keys() == set(SECTIONS)
    used = words.of_html() | words.of_scripts()
    assert table["words"].keys() - used == set(), "nothing says these any more"
    assert used - table["words"].keys() == set(), f"not in web/ui/words/{name}.js"


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("section", SECTIONS)
def test_a_translation_keeps_values_and_forms(name: str, section: str) -> None:
    for english, other in words.table(name)[section].items():
        ours, theirs = english.split("|"), other.split("|")
        assert len(ours) == len(theirs), english
        for form, translated in zip(ours, theirs, strict=True):
            assert translated.strip() == translated != "", english
            placeholders = [sorted(words.PLACEHOLDER.findall(text)) for text in (form, translated)]
            assert placeholders[0] == placeholders[1], english


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_text_is_found_in_one_section_alone(name: str) -> None:
    table = words.table(name)
    assert table["words"].keys() & table["said"].keys() == set()
    assert (table["words"].keys() | table["said"].keys()) & table["amounts"].keys() == set()


def around_the_tables(script: str) -> list[str]:
    """Return the literals that a script shows untranslated; texts that chats keep are exempt."""
    literals = [text for found in SHOWN.finditer(script) for text in LITERAL.findall(found[0])]
    kept = words.table(LANGUAGES[0])["said"]
    return [
        text
        for text in literals
        if words.IN_LETTERS.search(NAMES.sub("", VALUE.sub("", text))) and text[1:-1] not in kept
    ]


def test_no_script_shows_words_around_the_tables() -> None:
    found = {path.name: around_the_tables(path.read_text()) for path in words.scripts()}
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
    assert words.keys_of(script) == ["a {0} c {1}", "f|{0} {1}", "h"]


# ---- what the engine says

MODEL = {"parameters": 134_515_008, "size": 512, "context": 2048, "gpu_bytes": 205_000_000}
LIMITS = dict.fromkeys(NEEDED_LIMITS, 1000)


def test_models_are_told_in_german() -> None:
    sizes = (101_000_000, 1_200_000_000, 4_000_000_000)
    texts = [
        facts(MODEL),
        *(plain_words({"size": size, "context": 2048}) for size in sizes),
        fit({"largest_buffer": 2000}, LIMITS)["fit"],
        describe_offer({**MODEL, "stored": False}, LIMITS)["action"],
        describe_offer({**MODEL, "stored": False, "kept_bytes": 100}, LIMITS)["action"],
        "no such text, of which 3 are left",
    ]
    assert words.retold("de-DE", texts) == [
        "134,5 Millionen Parameter · 512 Byte · Kontext von 2.048 Tokens · 205 MB GPU-Speicher",
        "klein und schnell · 101 MB · merkt sich etwa 1.500 Wörter",
        "mittelgroß · 1,2 GB · merkt sich etwa 1.500 Wörter",
        "groß und langsamer · 4,0 GB · merkt sich etwa 1.500 Wörter",
        "Passt nicht: Es braucht 2,0 kB am Stück, und diese GPU nimmt höchstens 1,0 kB.",
        "Chat starten (512 Byte, einmalig)",
        "Weitermachen (100 Byte von 512 Byte sind da)",
        "no such text, of which 3 are left",
    ]


def test_progress_is_told_in_german(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    told: list[str] = []
    meter = LoadMeter(lambda progress: told.append(progress["text"]))
    meter(DOWNLOAD, 0, 101_000_000)
    meter(DOWNLOAD, 12_300_000, 101_000_000)
    meter("shaders", 3, 12)
    assert words.retold("de", told) == [
        "0 Byte von 101 MB",
        "12,3 MB von 101 MB · 1,2 MB/s · noch 72 s",
        "3 von 12",
    ]


def test_answers_and_faults_are_told_in_german() -> None:
    usage = Usage(
        prompt_tokens=9,
        cached_tokens=0,
        completion_tokens=4,
        time_to_first_token_s=1.0,
        decode_tokens_per_s=1.5,
        dropped_messages=2,
    )
    last = Piece(finish_reason="length", usage=usage)
    assert words.retold("de", [in_a_line(last, 3.5), str(ContextLengthError(5300, 2048))]) == [
        "An der Grenze der Tokens abgeschnitten · 4 Tokens · 3,5 s "
        "(0,5 Vorbereitung, 1,0 Lesen, 2,0 Schreiben) · 1,5 Tok/s"
        " · 2 älteste Nachrichten weggelassen",
        "die Nachrichten haben 5.300 Tokens, und der Kontext des Modells fasst 2.048, die Antwort "
        "eingeschlossen: Kürze sie, oder lass die ältesten Nachrichten weglassen",
    ]
