"""How many tokens the GPU gets at a time: of a prompt as many as Stop can wait for, of an answer as
many as still seem to flow."""

from py_runtime.generation.device_sampler import MAX_DRAWS

CHUNK_SECONDS = 0.25  # what a user who presses Stop hardly notices
MIN_PREFILL_CHUNK = 16  # tokens
BATCH_SECONDS = 0.05  # text that comes so often seems to flow, and Stop seems to act at once


class PrefillPace:
    """Chunks are powers of two, so that a graph sees few different sizes."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._chunk = min(2 * MIN_PREFILL_CHUNK, largest)

    def next_chunk(self) -> int:
        return self._chunk

    def took(self, tokens: int, seconds: float) -> None:
        """A full chunk is a measurement; a shorter one, at a prompt's end, only if it was slow."""
        if tokens < MIN_PREFILL_CHUNK or (tokens < self._chunk and seconds <= CHUNK_SECONDS):
            return
        fitting = max(int(tokens * CHUNK_SECONDS / max(seconds, 1e-6)), MIN_PREFILL_CHUNK)
        self._chunk = min(1 << (fitting.bit_length() - 1), self.largest)


class BatchPace:
    """A session's first batches are short, and double as long as they take no longer; what was
    found so holds for its next answer, too."""

    def __init__(self) -> None:
        self.steps = 1
        self._last: float | None = None

    def begin(self) -> None:
        """An answer's: how long its first token takes is the prompt's affair."""
        self._last = None

    def arrived(self, tokens: int, now: float) -> None:
        """A batch of so many, at this time in seconds."""
        if self._last is not None:
            fitting = int(tokens * BATCH_SECONDS / max(now - self._last, 1e-6))
            self.steps = min(max(fitting, 1), 2 * self.steps, MAX_DRAWS)
        self._last = now
