"""Somebody else's page around the engine: what web/engine.js says of it."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

ENDING = re.compile(r"(\.gguf|\.pte)?/?$", re.IGNORECASE)


@dataclass(frozen=True)
class OuterPage:
    """`models`: addresses of those it offers, of any origin; others come from its own alone."""

    page: str
    models: list[str]
    storage: bool

    @classmethod
    def from_json(cls, text: str) -> "OuterPage":
        return cls(**json.loads(text))

    def listed(self) -> list[dict[str, Any]]:
        """As models.json has them."""
        return [{"name": name_of(address), "path": address} for address in self.models]

    def allows(self, url: str) -> bool:
        """Of one that is not listed."""
        return urlsplit(url)[:2] == urlsplit(self.page)[:2]


def name_of(address: str) -> str:
    """`https://host/models/Toy/` is Toy."""
    return unquote(ENDING.sub("", address).rpartition("/")[2])
