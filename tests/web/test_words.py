"""The page's words: each is in the table of every language, and none goes around the tables."""

import re

import pytest

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
    """What chats keep is kept in English, and told when it is shown."""
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
