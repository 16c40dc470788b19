"""A text encoder as far as it is known before any weight is read."""

from dataclasses import dataclass

from py_runtime.encoder.config import EncoderConfig
from py_runtime.encoder.encoding import Encoding
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import Manifest
from py_runtime.program import Program


@dataclass(frozen=True)
class EncoderFolder(ModelFolder):
    """A folder as a store opens it where a model encodes texts and writes none."""

    encoding: Encoding
    config: EncoderConfig


def encoder_folder(
    manifest: Manifest, program: Program, encoding: Encoding, config: EncoderConfig
) -> EncoderFolder:
    """Return the folder of an encoder whose constants come from elsewhere."""
    return EncoderFolder(manifest, program, {}, {}, encoding, config)
