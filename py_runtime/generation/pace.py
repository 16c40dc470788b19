"""How many tokens of a prompt go into one call of the graph: as many as Stop can wait for."""

CHUNK_SECONDS = 0.25  # what a user who presses Stop hardly notices
SMALLEST_CHUNK = 16


class PrefillPace:
    """Chunks are powers of two, so that a graph sees few different sizes."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._chunk = min(2 * SMALLEST_CHUNK, largest)

    def next_chunk(self) -> int:
        return self._chunk

    def took(self, tokens: int, seconds: float) -> None:
        """A full chunk is a measurement; a shorter one, at a prompt's end, only if it was slow."""
        if tokens < SMALLEST_CHUNK or (tokens < self._chunk and seconds <= CHUNK_SECONDS):
            return
        fitting = int(tokens * CHUNK_SECONDS / max(seconds, 1e-6))
        power = 1 << max(fitting.bit_length() - 1, 0)
        self._chunk = min(max(power, SMALLEST_CHUNK), self.largest)
