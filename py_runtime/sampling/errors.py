"""Faults of logits."""

from py_runtime.base.errors import InpageError


class NoFiniteLogitsError(InpageError):
    """Logits without a finite value: any choice would be junk."""

    code = "no_finite_logits"

    def __init__(self, of_how_many: int) -> None:
        super().__init__(
            f"the model computed no finite logits: all {of_how_many} that may be chosen are NaN or "
            "infinite; verify the model on this GPU, or load it again"
        )
