"""The number of tokens per submit.

A chunk of a prompt is as long as Stop can wait for, a batch of an answer as long as text still
seems to flow.
"""

from py_runtime.generation.device_sampler import MAX_DRAWS

CHUNK_SECONDS = 0.25  # what a user who presses Stop hardly notices
MIN_PREFILL_CHUNK = 16  # tokens
BATCH_SECONDS = 0.05  # text that comes so often seems to flow, and Stop seems to act at once


class PrefillPace:
    """The size of a prompt's chunks, in powers of two so that a graph sees few sizes."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._chunk = min(2 * MIN_PREFILL_CHUNK, largest)

    def next_chunk(self) -> int:
        return self._chunk

    def took(self, tokens: int, seconds: float) -> None:
        """Record how long a chunk took; a shorter one counts only if it was slow."""
        if tokens < MIN_PREFILL_CHUNK or (tokens < self._chunk and seconds <= CHUNK_SECONDS):
            return
        fitting = max(int(tokens * CHUNK_SECONDS / max(seconds, 1e-6)), MIN_PREFILL_CHUNK)
        self._chunk = min(1 << (fitting.bit_length() - 1), self.largest)


class BatchPace:
    """The size of an answer's batches.

    A session's first batches are short and double as long as they take no longer; the result holds
    for its next answer, too.
    """

    def __init__(self) -> None:
        self.steps = 1
        self._last: float | None = None

    def begin(self) -> None:
        """Begin an answer; the time of its first token belongs to the prompt."""
        self._last = None

    def arrived(self, tokens: int, now: float) -> float | None:
        """Record the arrival of a batch, with the time in seconds; return how long it took."""
        last, self._last = self._last, now
        if last is None:
            return None
        fitting = int(tokens * BATCH_SECONDS / max(now - last, 1e-6))
        self.steps = min(max(fitting, 1), 2 * self.steps, MAX_DRAWS)
        return now - last
