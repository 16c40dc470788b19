"""Names that a cell offers while somebody types, and the commands that are not Python."""

from typing import Any

import pytest

from py_runtime.notebook.completion import complete
from py_runtime.notebook.magics import parted


class Thing:
    """A thing.

    With details.
    """

    looked = 0

    @property
    def costly(self) -> str:
        Thing.looked += 1
        return "text"

    def method(self, first: int, second: str = "x", *, third: bool = False) -> None:
        """Do something."""


NAMES: dict[str, Any] = {"thing": Thing(), "third_of_all": 1, "__name__": "x", "print": print}


def labels(text: str) -> list[str]:
    return [option["label"] for option in complete(text, NAMES)["options"]]


def test_names_attributes_and_keywords() -> None:
    assert "third_of_all" in labels("1 + th")
    assert "for" in labels("fo")
    assert "__name__" not in labels("_")
    assert labels("thing.me") == ["method"]
    assert complete("x = thing.me", NAMES)["begin"] == len("x = thing.")
    assert labels("nothing.me") == []
    assert "_private" not in labels("thing.")


def test_parameters_of_the_call_that_is_written() -> None:
    assert labels("thing.method(1, sec")[0] == "second="
    assert "third=" in labels("thing.method(")
    assert "third=" not in labels("thing.method(third=1, ")
    assert "third=" not in labels("thing.method(1); th")


def test_no_property_is_called_for_it() -> None:
    assert "costly" in labels("thing.co")
    assert labels("thing.costly.up") == []
    assert Thing.looked == 0


def test_options_say_what_they_are() -> None:
    (option,) = complete("thing.meth", NAMES)["options"]
    assert option == {"label": "method", "type": "function", "info": "Do something."}


@pytest.mark.parametrize(
    ("code", "commands", "python"),
    [
        ("%pip install a b==1\nimport a", [["a", "b==1"]], "\nimport a"),
        ("!pip install -q a", [["a"]], ""),
        ("x = 5 %pip", [], "x = 5 %pip"),
    ],
)
def test_pip_is_told_from_python(code: str, commands: list[list[str]], python: str) -> None:
    assert parted(code) == (commands, python)
