"""JSON mode and JSON schemas: masks over the vocabulary, so that the output always parses."""

from py_runtime.grammar.grammar import Grammar, grammar_for
from py_runtime.grammar.vocabulary import TokenTexts

__all__ = ["Grammar", "TokenTexts", "grammar_for"]
