"""The time to search a long document, natively and in the page: python -m bench.search.

Its words are drawn as often as words of a language come, and its chunks have random vectors with as
many numbers as a small encoder's: what is measured reads them all, whatever they say. Embedding the
question is not part of it.
"""

import argparse
import inspect
import json
import sys
from collections.abc import Mapping, Sequence

from bench.own_page import own_page

WIDTH = 384  # numbers of a vector
QUESTIONS = 5


def seconds_of_search(pages: int, width: int, questions: int) -> dict[str, float]:
    """Return the seconds to make the index, of the first question, and of the slowest later one."""
    import time

    import numpy as np

    from py_runtime.retrieval.document import PDF, Document
    from py_runtime.retrieval.search import Search

    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(2, 11)))) for _ in range(20_000)]
    drawn = (rng.zipf(1.2, pages * 450) - 1) % len(words)  # 450 words a page
    texts = [" ".join(words[at] for at in page) for page in drawn.reshape(pages, 450)]
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])]).tolist()
    document = Document("report.pdf", PDF, "\n".join(texts), starts)
    chunks = len(document.chunks)
    vectors = rng.integers(-127, 128, (chunks, width)).astype(np.int8)
    times = [time.perf_counter()]
    search = Search([document])
    search.add_vectors(vectors, 0.5, False)
    times.append(time.perf_counter())
    for _ in range(questions):
        question = " ".join(words[at] for at in rng.integers(0, 2000, 8))
        vector = rng.standard_normal(width).astype(np.float32)
        assert search.passages(question, 1000, lambda text: len(text) // 4, vector)
        times.append(time.perf_counter())
    making, first, *others = np.diff(times).tolist()
    return {"chunks": chunks, "index": making, "first": first, "later": max(others)}


def in_the_page(given: Sequence[int]) -> Mapping[str, float]:
    """Run the same in the page's Python."""
    name = seconds_of_search.__name__
    code = f"{inspect.getsource(seconds_of_search)}\nimport json\njson.dumps({name}(*{given}))"
    with own_page() as page:
        answer = page.evaluate("code => inpage.python(code)", code)
    found: Mapping[str, float] = json.loads(answer)
    return found


def main(arguments: list[str]) -> None:
    """Measure both, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.search")
    parser.add_argument("--pages", type=int, default=1000)
    given = [parser.parse_args(arguments).pages, WIDTH, QUESTIONS]
    for where, found in (
        ("natively", seconds_of_search(*given)),
        ("in the page", in_the_page(given)),
    ):
        print(
            f"{where}, {found['chunks']:,.0f} chunks: index {found['index']:.2f} s, first question "
            f"{found['first']:.2f} s, later ones {found['later']:.2f} s at most",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
