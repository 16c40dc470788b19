"""The automaton of a schema: stacks of shapes, all that are possible at once, byte by byte.

A cell is a shape at a place, on top of the cell where the text goes on after it. A state is a set
of cells; cells and states have numbers, and what a byte does to a state is looked up in a table
whose rows are made when they are first needed.
"""

import numpy as np

from py_runtime.grammar.shapes import Choice, Document, Local, Shape, fits
from py_runtime.grammar.strings import String
from py_runtime.grammar.vocabulary import IMPOSSIBLE, TokenTexts

DEAD = 0  # the state that nothing leads out of
END = 0  # the cell below all others: the text is whole
_MAX_STACKS = 64  # in one state; further ones are dropped, which only narrows the choice
_MAX_STATES = 12_000  # then all tables start anew
_GROWTH = 512

Cell = int
Cells = tuple[Cell, ...]


class StackAutomaton:
    """An automaton that numbers its states as it meets them, and starts anew at too many."""

    def __init__(self, root: Choice, texts: TokenTexts) -> None:
        self.document = Document(root)
        self.texts = texts
        self.generation = 0  # how often the tables were started anew
        self._clear()

    def forget_when_full(self) -> None:
        """Start all tables anew once they are full.

        States that were handed out are invalid then.
        """
        if len(self._states) > _MAX_STATES:
            self.generation += 1
            self._clear()

    def _clear(self) -> None:
        self._cells: list[tuple[Shape, Local, Cell, int]] = [None]  # type: ignore[list-item]
        self._cell_numbers: dict[tuple[Shape, Local, Cell], Cell] = {}
        self._closures: dict[Cell, frozenset[Cell]] = {END: frozenset([END])}
        self._cell_costs: dict[Cell, int] = {END: 0}
        self._states: list[Cells] = [()]
        self._state_numbers: dict[Cells, int] = {(): DEAD}
        self.table = np.zeros((_GROWTH, 256), np.int32)
        self.has_row = np.zeros(_GROWTH, np.bool_)
        self.has_row[DEAD] = True
        self.start = self._state(self._closure(self._cell(self.document, 0, END)))

    def step(self, state: int, byte: int) -> int:
        if not self.has_row[state]:
            self.make_row(state)
        return int(self.table[state, byte])

    def is_whole(self, state: int) -> bool:
        return END in self._states[state]

    def must_end(self, state: int) -> bool:
        return self._states[state] == (END,)

    def make_row(self, state: int) -> None:
        """Fill the table's row for a state: where each byte leads."""
        row = np.zeros(256, np.int32)
        cells = [cell for cell in self._states[state] if cell != END]
        if len(cells) == 1:
            for low, high, targets in self._moves(cells[0]):
                target = self._state(targets)
                row[low : high + 1] = target
        else:
            by_byte: dict[int, set[Cell]] = {}
            for cell in cells:
                for low, high, targets in self._moves(cell):
                    for byte in range(low, high + 1):
                        by_byte.setdefault(byte, set()).update(targets)
            for byte, merged in by_byte.items():
                row[byte] = self._state(frozenset(merged))
        self.table[state] = row
        self.has_row[state] = True

    def _moves(self, cell: Cell) -> list[tuple[int, int, frozenset[Cell]]]:
        shape, local, below, depth = self._cells[cell]
        return [
            (low, high, self._closure(self._cell(shape, target, below)))
            for low, high, target in shape.moves(local, depth)
        ]

    def _cell(self, shape: Shape, local: Local, below: Cell) -> Cell:
        key = (shape, local, below)
        number = self._cell_numbers.get(key)
        if number is None:
            number = self._cell_numbers[key] = len(self._cells)
            depth = -1 if below == END else self._cells[below][3] + 1
            self._cells.append((shape, local, below, depth))
        return number

    def _enter(self, choice: Choice, below: Cell, depth: int) -> frozenset[Cell]:
        cells = [
            self._closure(self._cell(option, option.start, below))
            for option in choice.options
            if fits(option, depth)
        ]
        return frozenset().union(*cells)

    def _closure(self, cell: Cell) -> frozenset[Cell]:
        """Return the cells whose shapes may take the next byte, when this one is on top."""
        found = self._closures.get(cell)
        if found is not None:
            return found
        shape, local, below, depth = self._cells[cell]
        made: set[Cell] = {cell} if shape.goes_on(local) else set()
        for choice, after in shape.calls(local, depth):
            made |= self._enter(choice, self._cell(shape, after, below), depth + 1)
        if shape.ends(local):
            made |= self._closure(below)
        self._closures[cell] = frozenset(made)
        return self._closures[cell]

    def _state(self, cells: frozenset[Cell]) -> int:
        ordered = tuple(sorted(cells))[:_MAX_STACKS]
        number = self._state_numbers.get(ordered)
        if number is None:
            number = self._state_numbers[ordered] = len(self._states)
            self._states.append(ordered)
            if number == len(self.table):
                self.table = np.concatenate([self.table, np.zeros_like(self.table)])
                self.has_row = np.concatenate([self.has_row, np.zeros_like(self.has_row)])
        return number

    def common(self, state: int) -> tuple[int, int]:
        """Return a state that allows the same tokens, and one for any text in a string, or DEAD.

        Inside a string it is the same however many characters have come, as long as no limit is
        near.
        """
        cells = self._states[state]
        free = [self._free_cell(cell) for cell in cells]
        if not any(free):
            return state, DEAD
        common = {new or cell for new, cell in zip(free, cells, strict=True)}
        first = next(cell for cell in free if cell)
        return self._state(frozenset(common)), self._state(frozenset([first]))

    def _free_cell(self, cell: Cell) -> Cell | None:
        if cell == END:
            return None
        shape, local, below, _ = self._cells[cell]
        if not isinstance(shape, String):
            return None
        place = shape.free_place(local, self.texts.longest)
        return None if place is None else self._cell(shape, place, below)

    def cost(self, state: int) -> int:
        """Return the most tokens that it takes to make the text whole."""
        return min(map(self._cell_cost, self._states[state]), default=IMPOSSIBLE)

    def ending(self, state: int) -> list[bytes]:
        """Return a short text that makes the text whole: what each shape still needs."""
        cell = min(self._states[state], key=self._cell_cost)
        parts = []
        while cell != END:
            shape, local, cell_below, depth = self._cells[cell]
            parts.append(shape.ending(local, depth))
            cell = cell_below
        return parts

    def _cell_cost(self, cell: Cell) -> int:
        cost = self._cell_costs.get(cell)
        if cost is None:
            shape, local, below, depth = self._cells[cell]
            own = self.texts.cost(shape.ending(local, depth))
            cost = self._cell_costs[cell] = min(own + self._cell_cost(below), IMPOSSIBLE)
        return cost
