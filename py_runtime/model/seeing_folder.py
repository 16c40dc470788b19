"""A model that sees, as far as it is known before any weight is read."""

from dataclasses import dataclass

from py_runtime.folder.layout import ModelFolder
from py_runtime.gguf.tower import Tower


@dataclass(frozen=True)
class SeeingFolder(ModelFolder):
    """A folder as a store opens it where a model's prompts may have images."""

    tower: Tower
