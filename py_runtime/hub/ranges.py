"""A file of the Hub that is read in parts, and not kept: to see what it is before it comes."""

from collections.abc import Sequence

import numpy as np

from py_runtime.hub.listing import HubFile
from py_runtime.hub.requests import FileRequests
from py_runtime.weights.byte_source import PIECE_BYTES, Pieces, ends_early


class HubSource:
    """A ByteSource."""

    is_remote = True

    def __init__(self, file: HubFile, requests: FileRequests) -> None:
        self.name = file.path.rpartition("/")[2]
        self._size = file.size
        self._requests = requests

    async def size(self) -> int:
        return self._size

    async def read(self, offset: int, nbytes: int) -> bytes:
        data = bytearray()
        async for _, piece in self.pieces([offset, offset + nbytes]):
            data += piece.tobytes()
        return bytes(data)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        if cuts[0] == cuts[-1]:
            return
        position, answer = await self._requests.open(cuts[0], cuts[-1])
        memory = np.empty(PIECE_BYTES, np.uint8)
        try:
            for end in cuts:
                while position < end:
                    block = await answer.next_block(memory[: end - position])
                    if not len(block):
                        raise ends_early(self.name, position)
                    if position >= cuts[0]:
                        yield position, block
                    position += len(block)
        finally:
            answer.close()
