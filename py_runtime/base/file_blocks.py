"""Files that come a block at a time, from wherever they come."""

from typing import Protocol

import numpy as np

# Bytes that a block has a multiple of, unless it fills its memory or is the last: the GPU takes
# whole words. web/bridge/files.js has the same figure.
BLOCK_UNIT = 16


class FileBlocks(Protocol):
    """A file, from some place of it on. To be closed."""

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """The next bytes, at the beginning of `memory`; none at the end."""

    def close(self) -> None: ...
