"""The table of families, from reports of runs as pytest writes them."""

from pathlib import Path

import pytest

from tests.export.families_table import family_in, outcomes, short_table, table, write

REPORT = """<testsuites><testsuite>
<testcase classname="tests.export.test_families" name="test_from_a_folder[gemma 4]"/>
<testcase classname="tests.export.test_families" name="test_from_a_gguf_natively[gemma 4]"/>
<testcase classname="tests.export.test_families" name="test_from_a_gguf_in_the_page[gemma 4]">
  <failure message="other logits"/></testcase>
<testcase classname="tests.export.test_families" name="test_from_a_folder[lfm2-moe]"/>
<testcase classname="tests.export.test_families" name="test_from_a_gguf_natively[lfm2-moe]">
  <skipped message="no GPU"/></testcase>
<testcase classname="tests.gguf.test_models" name="test_torch_s_tokens[native-qwen3-qwen3-8]"/>
<testcase classname="tests.gguf.test_mixes" name="test_torch_s_tokens[native-llama 2-Q6_K]"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("parameters", "family"),
    [
        ("qwen3.5", "qwen3.5"),
        ("native-lfm2-moe", "lfm2-moe"),
        ("page-phi-3 mini", "phi-3 mini"),
        ("native-qwen2.5-qwen2-8", "qwen2.5"),
        ("chromium", None),
    ],
)
def test_a_family_is_found_among_parameters(parameters: str, family: str | None) -> None:
    assert family_in(parameters) == family


def test_each_family_has_a_row_and_one_failure_counts(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    rows = table(outcomes(report)).splitlines()[2:]
    assert rows == ["| gemma 4 | ✔ | ✘ |", "| lfm2-moe | ✔ | – |", "| qwen3 | – | ✔ |"]


def test_families_that_came_off_alike_share_a_row(tmp_path: Path) -> None:
    found = {"qwen3": {"folder": True}, "gemma 4": {"folder": True, "GGUF": False}}
    found["lfm2"] = {"folder": True}
    rows = short_table(found).splitlines()[2:]
    assert rows == ["| ✔ | ✘ | gemma 4 |", "| ✔ | – | lfm2, qwen3 |"]
    document = tmp_path / "x.md"
    document.write_text("a\n<!-- families -->\nold\n<!-- /families -->\nb\n")
    write(document, "new")
    assert document.read_text() == "a\n<!-- families -->\nnew\n<!-- /families -->\nb\n"
