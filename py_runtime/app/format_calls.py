"""The check of a `response_format` before anything is asked: what is wrong, and where."""

from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.messages import worded
from py_runtime.grammar import check_format


def fault_of_format(response_format: Any) -> dict[str, Any] | None:
    """Return the fault with its place in the schema, in words and as a message; None if sound."""
    try:
        check_format(response_format)
    except RequestError as error:
        refusal: Any = error.said
        facts = refusal["facts"]
        fault: Any = facts["fault"]
        said = {"code": None, "facts": {}} if isinstance(fault, str) else fault
        return {
            "place": facts.get("place", ""),
            "reason": said["code"],
            "facts": said["facts"],
            "message": fault if isinstance(fault, str) else worded(fault),
        }
    return None
