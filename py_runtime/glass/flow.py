"""The data flow of a program, read backwards: who makes a value, and what it is made of."""

from collections.abc import Iterator

from py_runtime.ops.registry import REGISTRY
from py_runtime.passes.chain import VIEWS
from py_runtime.program import (
    BoolValue,
    DoubleValue,
    IntValue,
    OpCall,
    Program,
    TensorValue,
    as_constant,
)

Dims = tuple[int, ...]


class Flow:
    """A program with the makers of its values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._made_at = {v: at for at, call in enumerate(program.ops) for v in program.writes(call)}

    def maker(self, value_id: int) -> OpCall | None:
        at = self._made_at.get(value_id)
        return None if at is None else self.program.ops[at]

    def made_at(self, value_id: int) -> int:
        """Return the place of the op that makes a value; -1 of inputs and constants."""
        return self._made_at.get(value_id, -1)

    def dims(self, value_id: int) -> Dims:
        value = self.program.values[value_id]
        return value.dims if isinstance(value, TensorValue) else ()

    def arg(self, call: OpCall, name: str) -> int:
        return call.args[REGISTRY[call.name].args.index(name)]

    def number(self, value_id: int) -> float | None:
        value = self.program.values[value_id]
        return float(value.value) if isinstance(value, IntValue | DoubleValue | BoolValue) else None

    def is_constant(self, value_id: int) -> bool:
        return as_constant(self.program.values[value_id]) is not None

    def is_state(self, value_id: int) -> bool:
        value = self.program.values[value_id]
        return isinstance(value, TensorValue) and value.state

    def made_of(self, call: OpCall) -> list[int]:
        """Return the tensors that a call reads and another one made."""
        return [v for v in self.program.reads(call) if v in self._made_at and self.dims(v)]

    def source(self, call: OpCall) -> int | None:
        """Return the first tensor that a call reads and another one made."""
        return next(iter(self.made_of(call)), None)

    def reaches(self, begin: int, value_id: int) -> bool:
        """Return whether a value was made from `begin`."""
        first, seen, left = self.made_at(begin), {value_id}, [value_id]
        while left:
            found = left.pop()
            if found == begin:
                return True
            call = self.maker(found)
            for each in self.made_of(call) if call is not None else ():
                if each not in seen and self.made_at(each) >= first:
                    seen.add(each)
                    left.append(each)
        return False

    def cone(self, value_id: int, ends: set[int]) -> list[OpCall]:
        """Return the calls that make a value from any of `ends`, in chain order."""
        places: set[int] = set()
        left = [value_id]
        while left:
            found = left.pop()
            at = self.made_at(found)
            if found in ends or at < 0 or at in places:
                continue
            places.add(at)
            left += self.made_of(self.program.ops[at])
        return [self.program.ops[at] for at in sorted(places)]

    def unviewed(self, value_id: int, rank: int | None = None) -> int:
        """Return what a value is a view of; with a rank, the nearest of that rank."""
        while len(self.dims(value_id)) != rank:
            call = self.maker(value_id)
            if call is None or call.name not in VIEWS:
                break
            value_id = call.args[0]
        return value_id

    def backwards(self, value_id: int) -> Iterator[tuple[int, OpCall]]:
        """Yield a value and its maker, then the first that this one reads, and so on."""
        while (call := self.maker(value_id)) is not None:
            yield value_id, call
            source = self.source(call)
            if source is None:
                return
            value_id = source
