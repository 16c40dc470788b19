"""The faults of a model folder, one class for each family."""

from py_runtime.base.errors import InpageError

DAMAGED = "download the model again, or export it again"


class ModelError(InpageError):
    """A model folder that cannot be used; the text names the file, the fault and what to do."""

    code = "model_error"

    def __init__(self, fault: str, advice: str = DAMAGED) -> None:
        super().__init__(f"{fault}; {advice}")


class ModelFileError(ModelError):
    """A file that is missing, cannot be read, or has another size than the manifest says."""

    code = "model_file"


class ModelHashError(ModelError):
    """A file whose bytes are not those that were exported."""

    code = "model_hash"


class ManifestError(ModelError):
    """A manifest.json that does not follow docs/blob.md."""

    code = "model_manifest"


class ModelVersionError(ModelError):
    """A manifest.json of another format, or of a version this engine does not read."""

    code = "model_version"


class TensorHeaderError(ModelError):
    """A safetensors header that does not follow docs/blob.md."""

    code = "model_header"


class TensorLayoutError(ModelError):
    """Byte ranges in a safetensors header that do not fit their tensors, each other or the file."""

    code = "model_layout"


class ModelTensorsError(ModelError):
    """Tensors in the files that are not the constants of the graph."""

    code = "model_tensors"
