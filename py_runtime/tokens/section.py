"""The sections of tokenizer.json: objects with their places, for errors that name them."""

from dataclasses import dataclass
from typing import Any, TypeVar

from py_runtime.tokens.errors import TokenizerError

T = TypeVar("T")
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Section:
    """An object of the file; its getters check the type, and its errors name the place."""

    where: str  # such as pre_tokenizer.pretokenizers[1]
    fields: dict[str, Any]

    @classmethod
    def of(cls, where: str, value: Any) -> "Section":
        if not isinstance(value, dict):
            raise TokenizerError(
                f"tokenizer.json: {where or 'the file'} is {type(value).__name__}, not an object"
            )
        return cls(where, value)

    @property
    def kind(self) -> str:
        return self.get("type", str)

    def get(self, name: str, kind: type[T], default: T = _REQUIRED) -> T:
        """Return the field `name`; `default` stands in for an absent or null one."""
        value = self.fields.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if not isinstance(value, kind):
            found = "missing" if value is None else f"{type(value).__name__}, not {kind.__name__}"
            raise self.error(f"{name} is {found}")
        if isinstance(value, str):
            self.refuse_surrogates(name, value)
        return value

    def refuse_surrogates(self, name: str, text: str) -> None:
        """JSON can spell half of a pair, which no text that is encoded or decoded may hold."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.error(f"{name} has half of a surrogate pair") from None

    def section(self, name: str) -> "Section | None":
        value = self.fields.get(name)
        return None if value is None else Section.of(self._place_of(name), value)

    def sections(self, name: str) -> list["Section"]:
        place = self._place_of(name)
        items = self.get(name, list)
        return [Section.of(f"{place}[{index}]", item) for index, item in enumerate(items)]

    def error(self, fault: str) -> TokenizerError:
        return TokenizerError(f"tokenizer.json: {self.where or 'the file'}: {fault}")

    def unsupported(self) -> TokenizerError:
        return self.error(f"{self.kind!r} is not supported")

    def _place_of(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name
