"""Vocabularies that the tests of constrained output share."""

from functools import cache

from py_runtime.grammar import Grammar, TokenTexts, grammar_for
from py_runtime.tokens import Tokenizer
from tests.tokens import toy
from tests.tokens.reference import SMOLLM2, tokenizer_file

TOY = "toy"
END = {TOY: toy.END, SMOLLM2: "<|im_end|>", "gpt2": "<|endoftext|>", "llama2": "</s>"}


@cache
def tokenizer_of(name: str) -> Tokenizer:
    file = toy.toy_tokenizer().to_str() if name == TOY else tokenizer_file(name)
    return Tokenizer.from_json(file)


def end_of(name: str) -> int:
    found = tokenizer_of(name).id_of(END[name])
    assert found is not None
    return found


@cache
def texts_of(name: str) -> TokenTexts:
    """Return the texts, with some logits more than tokens, as many models have them."""
    tokenizer = tokenizer_of(name)
    return TokenTexts(tokenizer, tokenizer.vocabulary_size + 5, [end_of(name)])


def grammar(name: str, schema: object) -> Grammar:
    asked = {"type": "json_schema", "json_schema": {"name": "test", "schema": schema}}
    made = grammar_for(asked, texts_of(name))
    assert made is not None
    return made
