"""The views of models, graphs, profiles and verifications in notebooks."""

from pathlib import Path

from py_runtime.graph.profile import Profile, Timing
from py_runtime.model import Model
from py_runtime.model.verify import LayerCheck, VerifyReport
from tests.runners import NativeRunner, wait
from tests.toy_model import NAME


def test_a_profile_and_a_verification() -> None:
    timing = Timing("aten.mm", "aten.mm", 3, 12.5, 1.0)
    html = Profile(12.5, [timing], [timing], [timing] * 3)._repr_html_()
    assert "<td>aten.mm</td><td>3</td><td>12.5</td><td>100.0%</td>" in html
    report = VerifyReport([LayerCheck("layers.0", 1e-6, 2e-6, ok=True)], summary="All is well.")
    html = report._repr_html_()
    assert "All is well." in html
    assert "<td>layers.0</td><td>1.0e-06</td><td>2.0e-06</td><td>✓</td>" in html


def test_a_model_and_its_graph(toy_model: Path, native: NativeRunner) -> None:
    model = wait(Model.load(native.device, str(toy_model)))
    assert f"<strong>{NAME}</strong>" in model._repr_html_()
    assert "context of 512 tokens" in model._repr_html_()
    assert "<th>op</th><th>count</th>" in model.graph._repr_html_()
    model.unload()
