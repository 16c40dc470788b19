"""What can be wrong with a model folder: one class for each family of faults."""

from py_runtime.base.errors import InpageError

DAMAGED = "download the model again, or export it again"


class ModelError(InpageError):
    """A model folder cannot be used; the text names the file, the fault and what to do."""

    code = "model_error"

    def __init__(self, fault: str, advice: str = DAMAGED) -> None:
        super().__init__(f"{fault}; {advice}")


class ModelFileError(ModelError):
    """A file is missing, cannot be read, or has another size than the manifest says."""

    code = "model_file"


class ModelHashError(ModelError):
    """A file's bytes are not those that were exported."""

    code = "model_hash"


class ManifestError(ModelError):
    """manifest.json is not what docs/blob.md asks for."""

    code = "model_manifest"


class ModelVersionError(ModelError):
    """manifest.json is of another format, or of a version this engine does not read."""

    code = "model_version"


class TensorHeaderError(ModelError):
    """A safetensors header is not what docs/blob.md asks for."""

    code = "model_header"


class TensorLayoutError(ModelError):
    """The byte ranges in a safetensors header do not fit their tensors, each other or the file."""

    code = "model_layout"


class ModelTensorsError(ModelError):
    """The tensors in the files are not the constants of the graph."""

    code = "model_tensors"
