"""The same texts in the page as natively."""

from typing import Any

import pytest

from tests.grammar.in_runtime import generate
from tests.grammar.schemas import SCHEMAS
from tests.grammar.test_refusals import REFUSED
from tests.runners import Runner, wait
from tests.tokens.reference import tokenizer_file

IN_RUNTIME = "tests.grammar.in_runtime"
NOT_SENT = ("huge enum", "items nested deeply", "allOf nested deeply")


@pytest.mark.thorough_in_page
def test_texts(runner: Runner) -> None:
    schemas = {name: schema for name, (schema, _) in SCHEMAS.items()}
    schemas |= {name: schema for name, schema in REFUSED.items() if name not in NOT_SENT}
    arguments: dict[str, Any] = {
        "tokenizer": tokenizer_file("gpt2"),
        "schemas": schemas,
        "budget": 150,
    }
    made = runner.run(IN_RUNTIME, "generate", **arguments)
    assert made == wait(generate(None, **arguments))
    assert {name for name, text in made.items() if text.startswith("refused")} == {
        name for name in schemas if name in REFUSED
    }


@pytest.mark.parametrize("depth", [25, 95, 300])
def test_deep_schemas(runner: Runner, depth: int) -> None:
    fault = runner.run(
        IN_RUNTIME, "fault_of_deep_schema", tokenizer=tokenizer_file("gpt2"), depth=depth
    )
    assert (
        fault
        == {
            25: "none",
            95: "response_format: #"
            + "/allOf/0" * 64
            + ": the schema refers to itself, or too far, "
            "with nothing in between",
            300: "response_format: the schema is nested too deeply",
        }[depth]
    )
