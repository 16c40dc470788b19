"""Errors of adapters."""

from py_runtime.base.errors import InpageError


class AdapterError(InpageError):
    """An adapter that cannot be used; the text names the file, the fault and what to do."""

    code = "adapter"

    def __init__(self, fault: str, advice: str = "get another adapter") -> None:
        super().__init__(f"{fault}; {advice}")
