"""Changes to a sound JSON document that make it lie."""

from collections.abc import Callable
from typing import Any

Document = dict[str, Any]


def put(*path_and_value: Any) -> Callable[[Document], None]:
    """Set document[path…] = value."""
    *path, key, value = path_and_value

    def change(document: Document) -> None:
        place_of(document, path)[key] = value

    return change


def drop(*path: Any) -> Callable[[Document], None]:
    """Delete document[path…]."""

    def change(document: Document) -> None:
        del place_of(document, path[:-1])[path[-1]]

    return change


def place_of(document: Document, path: Any) -> Any:
    place: Any = document
    for step in path:
        place = place[step]
    return place
