"""A map of texts by a model that encodes them, which places them better than one that writes."""

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.layout import principal
from tests.encoder.checkpoints import POSITIONS, SENTENCES, Files, files_of, make_encoder
from tests.runners import CpuRunner, PageRunner, wait

pytestmark = pytest.mark.torch

CASES = "tests.encoder.in_runtime"
TEXTS = [*SENTENCES, "", SENTENCES[0], "the fox " * POSITIONS]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files_of(tmp_path_factory.mktemp("encoder"), make_encoder("bert"))


def test_places_are_those_of_its_vectors(cpu: CpuRunner, files: Files) -> None:
    found = cpu.run(CASES, "mapped", files=files, texts=list(SENTENCES))
    points, shares = wait(principal(found["vectors"], 2, CancelToken()))
    np.testing.assert_allclose(found["map"]["principal"], points, atol=1e-5)
    np.testing.assert_allclose(found["map"]["shares"], shares, atol=1e-6)
    assert found["map"]["at"] == list(range(len(SENTENCES)))
    assert found["steps"] == sorted(found["steps"])
    assert found["steps"][-1] == 1


def test_blank_texts_have_no_place_and_long_ones_are_cut(cpu: CpuRunner, files: Files) -> None:
    texts = [*SENTENCES, "", SENTENCES[0], "the fox " * POSITIONS]
    count = len(SENTENCES)
    found = cpu.run(CASES, "mapped", files=files, texts=texts)["map"]
    assert found["at"] == [*range(count), count + 1, count + 2]
    assert found["is_cut"].tolist() == [0] * (count + 1) + [1]
    np.testing.assert_array_equal(found["principal"][0], found["principal"][count])


@pytest.mark.browser
@pytest.mark.thorough
def test_a_page_maps_with_it_and_looks_no_further(in_page: PageRunner, files: Files) -> None:
    found = in_page.run(CASES, "asked_by_a_page", files=files, texts=list(SENTENCES))
    assert found["map"]["at"] == list(range(len(SENTENCES)))
    assert found["map"]["model"] == "small-encoder"
    assert "is a text encoder" in found["said"]
