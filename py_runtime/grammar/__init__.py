"""JSON mode and JSON schemas: masks over the vocabulary, so that the output always parses."""

from py_runtime.grammar.grammar import Grammar, check_format, grammar_for
from py_runtime.grammar.vocabulary import TokenTexts

__all__ = ["Grammar", "TokenTexts", "check_format", "grammar_for"]
