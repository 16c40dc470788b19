"""The keys of a file's architecture, each asked for within bounds."""

from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, shown
from py_runtime.gguf.metadata import Metadata


class Keys:
    """The keys of an architecture: `llama.block_count` is 'block_count' here."""

    def __init__(self, metadata: Metadata, architecture: str) -> None:
        self._metadata = metadata
        self.architecture = architecture

    def __contains__(self, key: str) -> bool:
        return self._whole(key) in self._metadata

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        whole = self._whole(key)
        if default is not None and whole not in self._metadata:
            return default
        if self._metadata.is_array(whole):
            raise self.unsupported(key, "differs from layer to layer")
        return self._metadata.integer(whole, least, most)

    def integers(
        self, key: str, layers: int, least: int, most: int, default: int | None = None
    ) -> list[int]:
        """Return one for each layer; where a file has one number, it is all layers'."""
        whole = self._whole(key)
        if not self._metadata.is_array(whole):
            return [self.integer(key, least, most, default=default)] * layers
        found = [int(item) for item in self._metadata.integers(whole)]
        if len(found) < layers or not all(least <= item <= most for item in found):
            raise self.fault(key, f"needs {layers} integers from {least} to {most}")
        return found[:layers]

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        whole = self._whole(key)
        if default is not None and whole not in self._metadata:
            return default
        return self._metadata.number(whole, least, most)

    def pattern(self, key: str, layers: int, default: int) -> list[bool]:
        """Return a flag for each layer; where files give a period, its last layer differs."""
        whole = self._whole(key)
        if self._metadata.is_array(whole):
            flags = [bool(flag) for flag in self._metadata.flags(whole)]
            if len(flags) < layers:
                raise self.fault(key, f"has {len(flags)} items for {layers} layers")
            return flags[:layers]
        period = self.integer(key, 1, 1 << 10, default=default)
        return [(number + 1) % period != 0 for number in range(layers)]

    def flag(self, key: str, default: bool) -> bool:
        whole = self._whole(key)
        return self._metadata.flag(whole) if whole in self._metadata else default

    def text(self, key: str, default: str) -> str:
        whole = self._whole(key)
        return self._metadata.text(whole) if whole in self._metadata else default

    def refuse(self, keys: dict[str, str]) -> None:
        """Refuse a file that has one of these keys; zero and false say that it does without."""
        for key, what in keys.items():
            value = self._metadata.values.get(self._whole(key))
            if value is not None and (value.is_array or value.item != 0):
                raise self.unsupported(key, f"asks for {what}")

    def fault(self, key: str, text: str) -> GgufError:
        return self._metadata.fault(self._whole(key), text)

    def unsupported(self, key: str, text: str) -> UnsupportedGgufError:
        return UnsupportedGgufError(
            f"{self._metadata.file}: its metadata {shown(self._whole(key))} {text}, which this "
            "engine does not compute",
            "get another model",
        )

    def _whole(self, key: str) -> str:
        return f"{self.architecture}.{key}"
