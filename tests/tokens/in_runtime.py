"""Code that runs where the engine runs, natively or in the page, for the tests of tokens."""

import hashlib
import sys
import unicodedata
from itertools import groupby
from typing import Any

from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.template import ChatTemplate
from py_runtime.tokens import StreamDecoder, TextError, Tokenizer
from py_runtime.tokens.normalizers import unicode_form


async def encode_and_decode(device: Any, tokenizer: str, texts: list[str]) -> list[Any]:
    """Ids with special tokens and without, and the texts they decode to without and with them."""
    found = Tokenizer.from_json(tokenizer)
    with_special = [found.encode(text) for text in texts]
    plain = [found.encode(text, add_special_tokens=False) for text in texts]
    skipping = [found.decode(ids) for ids in with_special]
    whole = [found.decode(ids, skip_special_tokens=False) for ids in with_special]
    return [with_special, plain, skipping, whole]


async def stream(device: Any, tokenizer: str, ids: list[int]) -> list[str]:
    """Return what each id adds, and at last what was held back."""
    decoder = StreamDecoder(Tokenizer.from_json(tokenizer), skip_special_tokens=False)
    return [*map(decoder.push, ids), decoder.finish()]


async def fault_of(device: Any, tokenizer: str, code: int) -> str:
    """Return the error that half of a surrogate pair in the text causes."""
    try:
        Tokenizer.from_json(tokenizer).encode(f"a{chr(code)}")
    except TextError as error:
        return str(error)
    return "none"


async def render_all(device: Any, config: dict[str, Any], calls: list[dict[str, Any]]) -> list[str]:
    """Return what a chat template makes of each call, or why it refuses."""
    template = ChatTemplate.from_config(config)
    rendered = []
    for call in calls:
        try:
            rendered.append(template.render(**call))
        except ChatTemplateError as error:
            rendered.append(f"refused: {error}")
    return [*rendered, sys.modules["markupsafe"].__name__]


async def normalise_all(device: Any, contexts: list[str]) -> list[Any]:
    """Return the texts that normalisation may change here, and hashes of the results."""
    active = [char for char in every_character() if takes_part(char)]
    texts = [context.replace("?", char) for char in active for context in contexts]
    texts += (unicodedata.normalize("NFD", char) for char in active)
    normalised = {form: [unicode_form(form, text) for text in texts] for form in FORMS}
    return [texts, {form: digest_of(outputs) for form, outputs in normalised.items()}]


FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def every_character() -> list[str]:
    return [chr(code) for code in (*range(0xD800), *range(0xE000, 0x110000))]


def takes_part(char: str) -> bool:
    return bool(unicodedata.combining(char)) or not unicodedata.is_normalized("NFKD", char)


def digest_of(texts: list[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


async def category_runs(device: Any) -> list[str]:
    """Return the version of Python's own tables, and the table of ours that they would make."""
    categories = (unicodedata.category(chr(code)) for code in range(0x110000))
    lengths = ((category, len(list(run))) for category, run in groupby(categories))
    runs = "".join(f"{category}{length if length > 1 else ''}" for category, length in lengths)
    return [unicodedata.unidata_version, runs]
