"""Somebody else's page around the engine, as web/engine.js describes it."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

ENDING = re.compile(r"(\.gguf|\.pte)?/?$", re.IGNORECASE)


@dataclass(frozen=True)
class OuterPage:
    """A page; `models` are those it offers, of any origin; others come from its own origin."""

    page: str
    models: list[str]
    storage: bool

    @classmethod
    def from_json(cls, text: str) -> "OuterPage":
        return cls(**json.loads(text))

    def listed(self) -> list[dict[str, Any]]:
        """Return the offered models as models.json lists them."""
        return [{"name": name_of(address), "path": address} for address in self.models]

    def allows(self, url: str) -> bool:
        """Return whether a model that is not listed may be loaded."""
        return urlsplit(url)[:2] == urlsplit(self.page)[:2]


def name_of(address: str) -> str:
    """Return the name in an address: Toy for `https://host/models/Toy/`."""
    return unquote(ENDING.sub("", address).rpartition("/")[2])
