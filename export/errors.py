"""Errors of an export."""

from py_runtime.base.errors import InpageError


class ExportError(InpageError):
    """An error of a module or checkpoint that cannot be exported; the text says why and where."""

    code = "export_error"


class UnsupportedOpsError(ExportError):
    """An error that names all ops the engine lacks, with their module paths and source lines."""

    code = "unsupported_ops"

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        rows = "\n".join(f"  {fault}" for fault in faults)
        super().__init__(f"{len(faults)} ops of this module are not supported:\n{rows}")
