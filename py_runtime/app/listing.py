"""The list of models that a site offers (models.json); an entry with a fault hides no other."""

from typing import Any

from py_runtime.base.errors import NetworkError
from py_runtime.base.short_texts import short
from py_runtime.folder.strict_json import is_count, parse_strict_json

Json = dict[str, Any]

COUNTS = ("size", "parameters", "context", "gpu_bytes", "largest_buffer")


def parse_listing(data: bytes) -> list[Json]:
    """Return entries with a name, a path and the counts they give, or with a name and an error."""
    try:
        listed = parse_strict_json(data)
    except ValueError as error:
        raise NetworkError(
            f"the site's models.json is not JSON ({error}): the server or host sends something "
            "else in its place; start it again, or build the site again"
        ) from None
    if not isinstance(listed, list):
        raise NetworkError(f"the site's models.json must be a list, got {short(listed)}")
    return [_checked(entry, at) for at, entry in enumerate(listed)]


def _checked(entry: Any, at: int) -> Json:
    """Return the entry, or one that holds its fault."""
    where = f"models.json[{at}]"
    if not isinstance(entry, dict):
        return _faulty(where, f"{where} must be an object, got {short(entry)}")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        return _faulty(where, f"{where}.name must be a text, got {short(name)}")
    if not isinstance(entry.get("path"), str):
        return _faulty(name, f"{where}.path must be a text, got {short(entry.get('path'))}")
    if "error" in entry:
        return {**_faulty(name, str(entry["error"])), "path": entry["path"]}
    for key in COUNTS:
        if key in entry and not is_count(entry[key]):
            return _faulty(name, f"{where}.{key} must be a count, got {short(entry[key])}")
    return entry


def _faulty(name: str, error: str) -> Json:
    return {"name": name, "path": "", "error": error}
