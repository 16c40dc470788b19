"""The tables of docs/linear.md are those of the code."""

import pytest

from tests.ops.launched_products import PAGE, with_tables

pytestmark = pytest.mark.torch


@pytest.mark.thorough  # plans dozens of programs for all kinds of devices
def test_the_page_has_the_combinations_that_are_launched() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "python -m tests.ops.launched_products writes the tables"
