"""Models: a graph with its tokenizer, and its chat template if it has one; opened and loaded."""

from py_runtime.model.encoder import Encoder
from py_runtime.model.load import AnyModel, load_model, writer
from py_runtime.model.model import Model
from py_runtime.model.requirements import check_requirements

__all__ = ["AnyModel", "Encoder", "Model", "check_requirements", "load_model", "writer"]
