"""Passages of long documents: how they are cut, found, put in order and named."""

import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from py_runtime.retrieval.bm25 import K1, B, Bm25
from py_runtime.retrieval.document import MOST_BYTES, Document, utf_16_places
from py_runtime.retrieval.search import MOST_PASSAGES, Search, normalised, parts_of
from py_runtime.retrieval.vectors import Directions, packed
from py_runtime.retrieval.words import count_words

FILLER = "The quarterly report goes on with figures of no interest. "
FACTS = {
    3: "The lighthouse of Skerry was lit in 1811.",
    150: "Its keeper fed a heron named Balthasar.",
    287: "The repair cost 4,700 guilders.",
}


def pdf_of(pages: int, facts: dict[int, str]) -> Document:
    texts = [FILLER * 30 + facts.get(page, "") + FILLER * 10 for page in range(1, pages + 1)]
    starts = [sum(len(text) for text in texts[:page]) for page in range(pages)]
    return Document("report.pdf", "pdf", "".join(texts), starts)


@pytest.fixture(scope="module")
def report() -> Document:
    return pdf_of(300, FACTS)


def labels(document: Document) -> list[str]:
    return [document.label(chunk) for chunk in document.chunks]


# Chunks ------------------------------------------------------------------------------------------


def test_chunks_are_the_whole_text_but_blanks_and_stay_in_their_page(report: Document) -> None:
    ends = [*report.starts[1:], len(report.text)]
    before = 0
    for chunk in report.chunks:
        assert report.text[before : chunk.start].isspace() or before == chunk.start
        assert report.starts[chunk.part] <= chunk.start < chunk.end <= ends[chunk.part]
        assert chunk.end - chunk.start <= MOST_BYTES
        assert report.text[chunk.end - 1] == "."
        before = chunk.end
    assert not report.text[before:].strip()


def test_a_chunk_has_the_lines_that_it_stands_in() -> None:
    lines = [f"def function_{number}():\n    return {number}\n" for number in range(200)]
    document = Document("code.py", "py", "".join(lines))
    every = document.text.split("\n")
    assert len(document.chunks) > 5
    for chunk in document.chunks:
        assert (
            "\n".join(every[chunk.first - 1 : chunk.last]) == document.text[chunk.start : chunk.end]
        )
        assert document.text[chunk.start :].startswith("def "), "it begins where something begins"
    assert labels(document)[0] == f"code.py, lines 1–{document.chunks[0].last}"


def test_rows_of_a_table_are_counted_below_its_heading() -> None:
    rows = [f"{number},{'x' * 90}\n" for number in range(1, 31)]
    document = Document("data.csv", "csv", "number,name\n" + "".join(rows))
    assert document.label(document.chunks[0]) == "data.csv, rows 1–8 of the columns number,name"
    second = document.chunks[1]
    assert document.text[second.start : second.end].startswith(f"{second.first},")
    assert document.chunks[-1].last == 30


def test_a_folder_names_the_file_and_counts_its_own_lines() -> None:
    files = {"src/a.js": "let a;\nlet b;\n", "data/t.csv": "n\n1\n2\n"}
    starts = [0, len(files["src/a.js"])]
    document = Document("project", "folder", "".join(files.values()), starts, list(files))
    assert labels(document) == ["src/a.js, lines 1–2", "data/t.csv, rows 1–2 of the columns n"]


@pytest.mark.parametrize("text", ["", "   \n ", "x" * 5000, "字" * 3000, "a\ud800b" * 900])
def test_any_text_is_cut(text: str) -> None:
    document = Document("odd.txt", "txt", text)
    assert "".join(text[chunk.start : chunk.end] for chunk in document.chunks) == text.strip()
    for chunk in document.chunks:
        piece = text[chunk.start : chunk.end]
        assert len(piece.encode(errors="surrogatepass")) <= MOST_BYTES


def test_places_in_the_count_of_javascript() -> None:
    assert utf_16_places("plain, ä, 字") is None
    text = "a😀b"
    places = utf_16_places(text)
    assert places is not None
    assert places.tolist() == [0, 1, 3, 4]


# Words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Herons' nests, STRASSE", ["heron", "nest", "strasse"]),
        ("maxTokens = max_tokens", ["maxtoken", "max", "max", "token", "token"]),
        ("東京都 ﬁne", ["東京", "京都", "fine"]),
        ("class bus", ["class", "bus"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert list(count_words(text).elements()) == words


def test_bm25_is_its_formula() -> None:
    source = random.Random(1)
    texts = [" ".join(source.choices("abcdefgh", k=source.randint(1, 40))) for _ in range(50)]
    question = "a c h unknown a"
    average = sum(len(text.split()) for text in texts) / len(texts)
    expected = []
    for text in texts:
        counts, score = Counter(text.split()), 0.0
        for word in set(question.split()):
            among = sum(word in other.split() for other in texts)
            rarity = math.log(1 + (len(texts) - among + 0.5) / (among + 0.5))
            length = counts.total() / average
            score += rarity * counts[word] * (K1 + 1) / (counts[word] + K1 * (1 - B + B * length))
        expected.append(score)
    np.testing.assert_allclose(Bm25(texts).scores(question), expected, rtol=1e-5, atol=1e-6)


# Meaning -----------------------------------------------------------------------------------------


def test_bytes_keep_directions() -> None:
    source = np.random.default_rng(2)
    vectors, question = source.normal(size=(20, 64)), source.normal(size=64)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
    found = Directions(packed(vectors), is_centred=False).cosines(question)
    np.testing.assert_allclose(found, vectors @ question / lengths, atol=0.01)


def test_what_all_directions_share_is_left_out() -> None:
    source = np.random.default_rng(3)
    shared, own = 20 * np.ones(32), source.normal(size=(30, 32))
    found = Directions(packed(shared + own), is_centred=True).cosines(shared + own[7])
    assert found.argmax() == 7
    assert found[7] > 0.5 > np.sort(found)[-2]


def test_scores_are_a_weighted_sum_of_normalised_ones() -> None:
    texts = ["heron", "heron lake", "lake", "stone"]
    search = Search([Document(f"{at}.txt", "txt", text) for at, text in enumerate(texts)])
    vectors = np.eye(4, dtype=np.float32)
    question = np.array([0.1, 0.2, 0.9, 0.3], np.float32)
    words = search.scores("heron")
    search.add_vectors(packed(vectors), 0.25, is_centred=False)
    cosines = question / np.linalg.norm(question)
    expected = 0.75 * words + 0.25 * normalised(cosines, float(cosines.mean()))
    np.testing.assert_allclose(search.scores("heron", question), expected, atol=0.01)
    np.testing.assert_array_equal(search.scores("heron"), words)
    assert words.max() == 1


# Passages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("When was the lighthouse of Skerry lit?", 3),
        ("What was the heron called?", 150),
        ("How many guilders did the repairs cost?", 287),
    ],
)
def test_a_question_finds_its_page(report: Document, question: str, page: int) -> None:
    best = Search([report]).passages(question, 1000, len)[0]
    assert best.label == f"report.pdf, page {page}"
    assert FACTS[page] in best.text


def test_passages_keep_within_their_tokens(report: Document) -> None:
    search = Search([report])
    few = search.passages("lighthouse heron guilders", 300, len)
    assert sum(len(each.text) + len(each.label) for each in few) <= 300
    assert FACTS[few[0].chunk.part + 1] in few[0].text, "the sentence that has the words"
    assert len(search.passages("figures of interest", 10**6, len)) == MOST_PASSAGES
    assert search.passages("lighthouse", 20, len) == []


def test_a_passage_is_cut_to_the_sentence_with_the_rare_words() -> None:
    sentence = "It was the same as the day before, and the one before that. "
    text = sentence * 6 + "A heron came. " + sentence * 3
    others = [Document(f"{at}.txt", "txt", sentence * 8) for at in range(5)]
    found = Search([Document("a.txt", "txt", text), *others]).passages(
        "Was it the heron that came before?", 60, len
    )
    assert found[0].text.startswith("A heron came.")


def test_where_no_word_is_found_it_is_the_beginning(report: Document) -> None:
    found = Search([report]).passages("Worum geht es?", 2000, len)
    places = [(each.chunk.part, each.chunk.start) for each in found]
    assert places == [(each.part, each.start) for each in report.chunks[: len(found)]]
    assert len(found) > 1


def test_documents_are_searched_together() -> None:
    names = ["birds.txt", "stones.txt"]
    texts = ["A heron stands in the lake.", "Granite is hard, and stands."]
    search = Search([Document(*pair) for pair in zip(names, ["txt"] * 2, texts, strict=True)])
    assert search.passages("heron", 500, len)[0].label == "birds.txt, line 1"
    assert search.passages("granite", 500, len)[0].label == "stones.txt, line 1"


def test_parts_are_the_whole_document(report: Document) -> None:
    parts = parts_of(report, 10_000, len)
    chunks = list(report.chunks)
    assert [parts[0][0], parts[-1][1]] == [chunks[0], chunks[-1]]
    for (_, last), (first, _) in pairwise(parts):
        assert chunks.index(first) == chunks.index(last) + 1
    assert all(last.end - first.start <= 10_000 for first, last in parts)
    assert str(report.place(*parts[1])) == "report.pdf, pages 5–8"
