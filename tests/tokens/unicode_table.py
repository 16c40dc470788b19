"""Writes py_runtime/tokens/unicode_16.py from the Unicode tables of the Python that runs it.

Python 3.14's are of Unicode 16.0, which is also what `tokenizers` knows. The page's Python is one.
"""

import textwrap
import unicodedata
from itertools import groupby

HEADER = '''"""The general category of every character, from the Unicode Character Database 16.0.0.

Written by tests/tokens/unicode_table.py: runs of equal category from U+0000 on, each with its
length where that is not 1. It is a table of its own because every Python has another version of
Unicode than the next, and the words a tokenizer was trained on depend on it.
"""

RUNS = """
'''


def runs() -> str:
    categories = (unicodedata.category(chr(code)) for code in range(0x110000))
    lengths = ((category, len(list(run))) for category, run in groupby(categories))
    return "".join(f"{category}{length if length > 1 else ''}" for category, length in lengths)


def module_source(all_runs: str) -> str:
    return f'{HEADER}{textwrap.fill(all_runs, 100)}\n"""\n'
