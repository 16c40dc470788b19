"""The key-value pairs of a GGUF file: each is asked for as the type it must have."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from py_runtime.gguf.errors import GgufError, shown


class ValueType(IntEnum):
    """The types of values, as GGUF numbers them."""

    U8 = 0
    I8 = 1
    U16 = 2
    I16 = 3
    U32 = 4
    I32 = 5
    F32 = 6
    BOOL = 7
    TEXT = 8
    ARRAY = 9
    U64 = 10
    I64 = 11
    F64 = 12


FLOATS = frozenset({ValueType.F32, ValueType.F64})
INTEGERS = frozenset(ValueType) - FLOATS - {ValueType.BOOL, ValueType.TEXT, ValueType.ARRAY}
TEXTS = frozenset({ValueType.TEXT})
FLAGS = frozenset({ValueType.BOOL})
MAX_INTEGER = 2**63 - 1

Item = int | float | bool | str | list[str] | np.ndarray


@dataclass(frozen=True)
class Value:
    """A value as it is stored; `kind` is an array's element type."""

    kind: ValueType
    item: Item
    is_array: bool = False

    def __str__(self) -> str:
        name = self.kind.name.lower()
        return f"an array of {name}" if self.is_array else f"{name}"


class Metadata:
    """The metadata, each asked for by type; GgufError says what is missing or has another type."""

    def __init__(self, file: str, values: Mapping[str, Value]) -> None:
        self.file = file
        self.values = values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fault(self, key: str, text: str) -> GgufError:
        """Return the error for a value."""
        return GgufError(f"{self.file}: its metadata {shown(key)} {text}")

    def is_array(self, key: str) -> bool:
        return key in self.values and self.values[key].is_array

    def text(self, key: str) -> str:
        item = self._item(key, TEXTS, "a text")
        assert isinstance(item, str)
        return item

    def flag(self, key: str) -> bool:
        item = self._item(key, FLAGS, "true or false")
        assert isinstance(item, bool)
        return item

    def integer(self, key: str, least: int = 0, most: int = MAX_INTEGER) -> int:
        item = self._item(key, INTEGERS, "an integer")
        assert isinstance(item, int)
        if not least <= item <= most:
            raise self.fault(key, f"is {item}, not from {least} to {most}")
        return item

    def number(self, key: str, least: float, most: float) -> float:
        item = self._item(key, FLOATS, "a float")
        assert isinstance(item, float)
        if not least <= item <= most:  # nor is NaN
            raise self.fault(key, f"is {item:g}, not from {least:g} to {most:g}")
        return item

    def texts(self, key: str) -> list[str]:
        item = self._item(key, TEXTS, "an array of texts", is_array=True)
        assert isinstance(item, list)
        return item

    def flags(self, key: str) -> np.ndarray:
        return self._array(key, FLAGS, "an array of true or false")

    def integers(self, key: str) -> np.ndarray:
        return self._array(key, INTEGERS, "an array of integers")

    def numbers(self, key: str) -> np.ndarray:
        array = self._array(key, FLOATS, "an array of floats")
        if not np.isfinite(array).all():
            place = int(np.flatnonzero(~np.isfinite(array))[0])
            raise self.fault(key, f"has the value {array[place]} at {place}, which is not finite")
        return array

    def _array(self, key: str, kinds: frozenset[ValueType], wanted: str) -> np.ndarray:
        item = self._item(key, kinds, wanted, is_array=True)
        assert isinstance(item, np.ndarray)
        return item

    def _item(
        self, key: str, kinds: frozenset[ValueType], wanted: str, is_array: bool = False
    ) -> Item:
        value = self.values.get(key)
        if value is None:
            raise self.fault(key, "is missing")
        if value.kind not in kinds or value.is_array != is_array:
            raise self.fault(key, f"is {value}, not {wanted}")
        if isinstance(value.item, float) and not math.isfinite(value.item):
            raise self.fault(key, f"is {value.item}, which is not finite")
        return value.item
