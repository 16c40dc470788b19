"""Models: a decoder's graph with its tokenizer and chat template, opened, loaded and verified."""

from py_runtime.model.model import Model
from py_runtime.model.requirements import check_requirements

__all__ = ["Model", "check_requirements"]
