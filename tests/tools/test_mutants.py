"""Changes that tests should notice: the same ones for a seed, and each told apart by the tests."""

import ast
from pathlib import Path

import pytest

from tools.files import ROOT
from tools.mutants import Copy, changes, mutant_of, native_sources, room_tests, sample
from tools.nearest_first import nearest

pytestmark = pytest.mark.thorough  # of a tool that is run now and then
TOY = '''"""A toy: 1 < 2."""

MAX_SIZE = 8


def is_large(size: int = 3, *, exact: bool = True) -> bool:
    """Whether 1 + 1 is 2."""
    if not exact and size + 1 > MAX_SIZE:
        raise ValueError(f"{size + 2} is above {1 + 2}")
    unused = size - 7
    return size >= 5
'''
CHANGES = [
    "3 → 4",
    "True → False",
    "not exact and size + 1 > MAX_SIZE → not exact or size + 1 > MAX_SIZE",
    "not exact → not not exact",
    "size + 1 > MAX_SIZE → size + 1 >= MAX_SIZE",
    "size + 1 → size - 1",
    "1 → 2",
    "size - 7 → size + 7",
    "7 → 8",
    "return size >= 5 → return None",
    "size >= 5 → size > 5",
    "5 → 6",
]
TOY_TEST = """
from py_runtime.room.toy import is_large

def test_toy():
    assert [is_large(size) for size in (4, 5, 6)] == [False, True, True]
"""


def test_what_is_changed_and_what_is_left_alone() -> None:
    count = len(changes(ast.parse(TOY)))
    shown = {mutant_of("toy.py", TOY, place).shown.partition("  [")[2] for place in range(count)}

    assert shown == {f"{change}]" for change in CHANGES}


def test_what_would_do_as_well_is_left_alone() -> None:
    source = "x.reshape(-1, 4).sum(axis=-1)\nzip(a, b, strict=True)"
    shown = [mutant_of("toy.py", source, place).shown for place in range(2)]
    assert len(changes(ast.parse(source))) == 2
    assert [each.partition("  [")[2] for each in shown] == ["4 → 5]", "1 → 2]"]


def test_a_seed_decides() -> None:
    first = sample({"toy.py": TOY}, 1, 6)
    assert first == sample({"toy.py": TOY}, 1, 6) != sample({"toy.py": TOY}, 2, 6)
    assert len({mutant.source for mutant in first}) == 6
    assert len(sample({"toy.py": TOY}, 1, 100)) == len(CHANGES)


def test_an_edited_line_changes_no_other_that_is_drawn() -> None:
    def drawn(source: str) -> set[str]:
        return {mutant.shown for mutant in sample({"toy.py": source}, 1, 100)[:6]}

    assert drawn(TOY) == drawn("LOWEST = 1\n" + TOY.replace('"""Whether', '"""Say whether'))
    assert len(drawn(TOY) - drawn(TOY.replace("size - 7", "size - 8"))) <= 2


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Make a checkout with nothing but the toy and its test."""
    for file, text in {
        "py_runtime/__init__.py": "",
        "py_runtime/room/__init__.py": "",
        "py_runtime/room/toy.py": TOY,
        "tests/room/test_toy.py": TOY_TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["browser", "built", "model"]\n',
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return Copy(tmp_path)


@pytest.mark.long
def test_noticed_and_not_noticed(copy: Copy) -> None:
    file = "py_runtime/room/toy.py"
    mutants = [mutant_of(file, TOY, place) for place in range(len(CHANGES))]
    shown = {mutant.shown.partition("  [")[2]: mutant for mutant in mutants}
    assert copy.notices(shown["5 → 6]"], *room_tests(file))
    assert not copy.notices(shown["size - 7 → size + 7]"], *room_tests(file))
    assert (copy.root / file).read_text() == TOY


def test_the_quickest_of_those_that_call_the_changed_function_come_first() -> None:
    """The tests that call its file follow; the rest has nothing to do with it."""
    file, changed = "toy.py", "toy.py:6"
    tests = {
        "of the file": {"seconds": 0.1, "calls": [file, "toy.py:20"]},
        "slow": {"seconds": 9.0, "calls": [file, changed]},
        "elsewhere": {"seconds": 0.2, "calls": ["other.py", "other.py:6"]},
        "quick": {"seconds": 3.0, "calls": [file, changed]},
    }
    assert nearest(changed, tests) == ["quick", "slow", "of the file"]


@pytest.mark.long
def test_what_tests_call_is_known_once_they_ran(copy: Copy) -> None:
    """Two tests use a fixture that calls it, and one calls it.

    The one that has nothing to do with the file is not among them; its recursion might end in the
    one that looks on.
    """
    (copy.root / "py_runtime/room/toy.py").write_text(TOY + "\ndef other(): pass\n")
    (copy.root / "tests/room/test_toy.py").write_text(
        """
import pytest
from py_runtime.room.toy import is_large, other

@pytest.fixture(scope="module")
def large():
    return is_large(7)

def test_apart():
    def deeper(): deeper()
    with pytest.raises(RecursionError): deeper()
def test_file(): other()
def test_asks(large): assert large
def test_shares(large): assert large
def test_near(): assert is_large(7)
"""
    )
    mutant = mutant_of("py_runtime/room/toy.py", TOY, len(CHANGES) - 1)
    assert mutant.changed == "py_runtime/room/toy.py:6"
    tests = copy.get_to_know("tests/room/test_toy.py")
    *near, file = [test.partition("::")[2] for test in nearest(mutant.changed, tests)]
    assert set(near) == {"test_asks", "test_shares", "test_near"}
    assert file == "test_file"


@pytest.mark.long
def test_a_hang_is_noticed(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.mutants.PATIENCE_SECONDS", 2)
    hanging = mutant_of("py_runtime/room/toy.py", TOY + "\nwhile not True:\n    pass\n", 12)
    assert "not not True" in hanging.source
    assert copy.notices(hanging, "tests/room")


@pytest.mark.long
def test_a_change_that_takes_all_memory_is_noticed(copy: Copy) -> None:
    greedy = mutant_of("py_runtime/room/toy.py", TOY + "\nlarge = bytes(0 << 33)\n", len(CHANGES))
    assert "bytes(1 << 33)" in greedy.source
    assert copy.notices(greedy, "tests/room")


@pytest.mark.long
def test_tests_that_fail_anyway_say_nothing(copy: Copy) -> None:
    (copy.root / "tests/room/test_toy.py").write_text("def test_toy(): assert False\n")
    with pytest.raises(SystemExit, match=r"tests/room/test_toy\.py: fails with nothing changed"):
        copy.notices(mutant_of("py_runtime/room/toy.py", TOY, 0), "tests/room")


@pytest.mark.long
def test_every_file_has_tests_and_none_is_of_the_page() -> None:
    sources = native_sources(ROOT)
    assert "py_runtime/graph/resize.py" in sources
    assert not {"py_runtime/gpu/page.py", "py_runtime/app/engine.py"} & set(sources)
    for file in sources:
        if changes(ast.parse(sources[file])):
            assert all((ROOT / test).exists() for test in room_tests(file)), file
