"""A text encoder as far as it is known before any weight is read."""

from dataclasses import dataclass

from py_runtime.encoder.encoding import Encoding
from py_runtime.folder.layout import ModelFolder


@dataclass(frozen=True)
class EncoderFolder(ModelFolder):
    """What a store opens where a model encodes texts and writes none."""

    encoding: Encoding
    max_texts: int  # that are encoded at once, all of them as long as can be


def encoder_folder(folder: ModelFolder, encoding: Encoding, max_texts: int) -> EncoderFolder:
    """Return a folder with what its model is for."""
    return EncoderFolder(
        folder.manifest, folder.program, folder.tensors, folder.goldens, encoding, max_texts
    )
