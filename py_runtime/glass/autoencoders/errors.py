"""Errors of sparse autoencoders."""

from py_runtime.base.errors import InpageError


class AutoencoderError(InpageError):
    """A sparse autoencoder that cannot be used; the text names the file, the fault, what to do."""

    code = "autoencoder"
