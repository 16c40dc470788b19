"""Files that arrive block by block, from any source."""

from typing import Protocol

import numpy as np

# Bytes that a block has a multiple of, unless it fills its memory or is the last: the GPU takes
# whole words. web/bridge/files.js has the same figure.
BLOCK_UNIT = 16


class FileBlocks(Protocol):
    """A file, from some offset on; the reader closes it."""

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """Read the next bytes into the beginning of `memory` and return them; none at the end."""

    def close(self) -> None: ...
