"""Finite automata over code points, from the non-deterministic kind to one without dead ends."""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

from py_runtime.grammar.limits import MAX_NFA_STATES, MAX_PATTERN_STATES, MAX_PATTERN_WORK
from py_runtime.tokens.characters import LAST_CODE

Move = tuple[int, int, int]  # first and last code point, and the state they lead to


class TooComplexError(Exception):
    """An error of an automaton that would take more memory or time than a pattern may."""


class Nfa:
    """A non-deterministic automaton: moves on code points, and steps that need none of them.

    A step may be an anchor: `at_start` and `at_end` steps are open only there.
    """

    def __init__(self) -> None:
        self.moves: list[list[Move]] = []
        self.steps: list[list[int]] = []
        self.at_start: dict[int, int] = {}
        self.at_end: dict[int, int] = {}

    def state(self) -> int:
        if len(self.moves) >= MAX_NFA_STATES:
            raise TooComplexError
        self.moves.append([])
        self.steps.append([])
        return len(self.moves) - 1

    def closure(self, states: Iterable[int], anchors: dict[int, int]) -> frozenset[int]:
        """Return all states that can be reached without a code point."""
        found = set(states)
        pending = list(found)
        while pending:
            state = pending.pop()
            follows = [*self.steps[state]]
            if state in anchors:
                follows.append(anchors[state])
            for target in follows:
                if target not in found:
                    found.add(target)
                    pending.append(target)
        return frozenset(found)


class Dfa:
    """A deterministic automaton that starts in state 0; every state leads to an accepting one."""

    start = 0

    def __init__(self, moves: list[list[Move]], accepting: list[bool]) -> None:
        self.moves = moves
        self.accepting = accepting
        self._endings = shortest_endings(moves, accepting)

    def ranges(self, state: int) -> list[Move]:
        return self.moves[state]

    def accepts(self, state: int) -> bool:
        return self.accepting[state]

    def ending(self, state: int) -> str:
        """Return a short text that leads from the state to an accepting one."""
        text: list[str] = []
        while (step := self._endings[state]) is not None:
            char, state = step
            text.append(char)
        return "".join(text)

    def free_state(self, state: int, longest: int) -> int | None:
        """Return the state itself, if any characters may come and the text could end after each."""
        is_free = self.accepting[state] and self.moves[state] == [(0, LAST_CODE, state)]
        return state if is_free else None

    def matches(self, text: str) -> bool:
        state = self.start
        for char in text:
            code = ord(char)
            target = next((to for low, high, to in self.moves[state] if low <= code <= high), None)
            if target is None:
                return False
            state = target
        return self.accepting[state]


def determinise(nfa: Nfa, start: int, final: int) -> Dfa | None:
    """None: nothing at all is accepted. What has reached `final` may go on in any way."""
    work = 0

    def merged(states: frozenset[int]) -> frozenset[int]:
        return frozenset([final]) if final in states else states

    first = merged(nfa.closure([start], nfa.at_start))
    numbers = {first: 0}
    moves: list[list[Move]] = []
    accepting: list[bool] = []
    queue = deque([first])
    while queue:
        states = queue.popleft()
        at_start = nfa.at_start if not moves else {}
        accepting.append(final in nfa.closure(states, nfa.at_end | at_start))
        row: list[Move] = []
        edges = [edge for state in states for edge in nfa.moves[state]]
        for low, high, targets in split_ranges(edges):
            if not has_characters(low, high):
                continue
            work += len(targets) + 1
            if work > MAX_PATTERN_WORK or len(numbers) > MAX_PATTERN_STATES:
                raise TooComplexError
            target = merged(nfa.closure(targets, {}))
            work += len(target)
            if target not in numbers:
                numbers[target] = len(numbers)
                queue.append(target)
            append_range(row, low, high, numbers[target])
        moves.append(row)
    return drop_dead_ends(moves, accepting)


def split_ranges(edges: list[Move]) -> list[tuple[int, int, set[int]]]:
    """Ranges that do not overlap, each with all its targets."""
    if not edges:
        return []
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for low, high, target in edges:
        opening.setdefault(low, []).append(target)
        closing.setdefault(high + 1, []).append(target)
    cuts = sorted(opening.keys() | closing.keys())
    open_count: dict[int, int] = {}
    made: list[tuple[int, int, set[int]]] = []
    for index, cut in enumerate(cuts):
        for target in opening.get(cut, ()):
            open_count[target] = open_count.get(target, 0) + 1
        for target in closing.get(cut, ()):
            open_count[target] -= 1
            if not open_count[target]:
                del open_count[target]
        if open_count:
            made.append((cut, cuts[index + 1] - 1, set(open_count)))
    return made


def has_characters(low: int, high: int) -> bool:
    """Halves of surrogate pairs are none: a text cannot hold them."""
    return low < 0xD800 or high > 0xDFFF


def append_range(row: list[Move], low: int, high: int, target: int) -> None:
    """Ranges come in order; one that goes on where the last ended becomes part of it."""
    if row and row[-1][2] == target and row[-1][1] + 1 == low:
        row[-1] = (row[-1][0], high, target)
    else:
        row.append((low, high, target))


def drop_dead_ends(moves: list[list[Move]], accepting: list[bool]) -> Dfa | None:
    """Keep the states from which a text can still end; None if there are none."""
    before: list[set[int]] = [set() for _ in moves]
    for state, row in enumerate(moves):
        for _, _, target in row:
            before[target].add(state)
    alive = {state for state, accepts in enumerate(accepting) if accepts}
    pending = list(alive)
    while pending:
        for state in before[pending.pop()]:
            if state not in alive:
                alive.add(state)
                pending.append(state)
    if 0 not in alive:
        return None
    kept = {state: number for number, state in enumerate(sorted(alive))}
    return Dfa(
        [[(low, high, kept[to]) for low, high, to in moves[state] if to in kept] for state in kept],
        [accepting[state] for state in kept],
    )


def intersect(left: Dfa, right: Dfa) -> Dfa | None:
    """Return the automaton that accepts what both accept."""
    numbers = {(0, 0): 0}
    queue = deque([(0, 0)])
    moves: list[list[Move]] = []
    accepting: list[bool] = []
    while queue:
        a, b = queue.popleft()
        accepting.append(left.accepting[a] and right.accepting[b])
        row: list[Move] = []
        for low_a, high_a, to_a in left.moves[a]:
            for low_b, high_b, to_b in right.moves[b]:
                low, high = max(low_a, low_b), min(high_a, high_b)
                if low > high or not has_characters(low, high):
                    continue
                if (to_a, to_b) not in numbers:
                    if len(numbers) > MAX_PATTERN_STATES * 8:
                        raise TooComplexError
                    numbers[to_a, to_b] = len(numbers)
                    queue.append((to_a, to_b))
                row.append((low, high, numbers[to_a, to_b]))
        moves.append(sorted(row))
    return drop_dead_ends(moves, accepting)


def automaton_of_length(least: int, most: int | None) -> Dfa:
    """Return the automaton of all texts with `least` to `most` code points."""
    last = least if most is None else most
    if last > MAX_PATTERN_STATES * 8:
        raise TooComplexError
    moves = [[(0, LAST_CODE, count + 1)] for count in range(last)]
    moves.append([(0, LAST_CODE, last)] if most is None else [])
    return Dfa(moves, [count >= least for count in range(last + 1)])


def all_but(texts: Iterable[str]) -> Dfa:
    """Every text but these."""
    children: list[dict[int, int]] = [{}]
    ends = [False]
    for text in texts:
        state = 0
        for char in text:
            if ord(char) not in children[state]:
                children[state][ord(char)] = len(children)
                children.append({})
                ends.append(False)
            state = children[state][ord(char)]
        ends[state] = True
    elsewhere = len(children)
    moves: list[list[Move]] = []
    for known in children:
        row: list[Move] = []
        after = 0
        for code in sorted(known):
            if after < code:
                row.append((after, code - 1, elsewhere))
            row.append((code, code, known[code]))
            after = code + 1
        if after <= LAST_CODE:
            row.append((after, LAST_CODE, elsewhere))
        moves.append(row)
    moves.append([(0, LAST_CODE, elsewhere)])
    return Dfa(moves, [*(not end for end in ends), True])


def shortest_endings(
    moves: list[list[Move]], accepting: list[bool]
) -> list[tuple[str, int] | None]:
    """Find each state's cheapest way to an end: its first character, and where that leads."""
    before: list[list[tuple[int, str, int]]] = [[] for _ in moves]
    for state, row in enumerate(moves):
        for low, high, target in row:
            char, cost = cheapest_character(low, high)
            before[target].append((state, char, cost))
    queue = [(0, state) for state, accepts in enumerate(accepting) if accepts]
    best = {state: 0 for _, state in queue}
    endings: list[tuple[str, int] | None] = [None] * len(moves)
    while queue:
        cost, target = heappop(queue)
        if cost > best[target]:
            continue
        for state, char, step in before[target]:
            if cost + step < best.get(state, 1 << 60):
                best[state] = cost + step
                endings[state] = (char, target)
                heappush(queue, (cost + step, state))
    return endings


def cheapest_character(low: int, high: int) -> tuple[str, int]:
    """Return a character of the range that takes few bytes inside a JSON string, and how many."""
    for first, last in ((0x61, 0x7A), (0x30, 0x39), (0x41, 0x5A), (0x5D, 0x7E), (0x23, 0x5B)):
        if max(low, first) <= min(high, last):
            return chr(max(low, first)), 1
    if low <= 0x20 <= high:
        return " ", 1
    if 0xD800 <= low <= 0xDFFF:
        low = 0xE000  # half of a pair is not a character
    return chr(low), 2 if low in (0x22, 0x5C) else 6 if low < 0x20 else len(chr(low).encode())
