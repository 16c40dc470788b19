"""The logits that tokens of a text were drawn from, row by row: one prefill over all of them."""

from collections.abc import Callable, Sequence

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model

Progress = Callable[[int, int], None]  # (done, of all)
TakeRow = Callable[[int, np.ndarray], None]


async def take_rows(
    model: Model,
    tokens: Sequence[int],
    first: int,
    take: TakeRow,
    progress: Progress,
    cancel: CancelToken,
) -> None:
    """Give `take` each position from `first` on, with the logits [V] that its token follows.

    After a lost device it begins at `first` again.
    """
    rows: list[np.ndarray] = []
    context = list(tokens[:-1])
    steps = len(tokens) + len(tokens) - first

    async with looking(model, cancel):
        space = Workspace.of(model)
        stream = space.anatomy.rows

        async def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
            if inputs[1][0] == 0:
                rows.clear()
            rows.append((await run_probed(model.graph, inputs, [stream]))[stream][0])
            progress(sum(map(len, rows)), steps)
            return rows

        async def compute() -> None:
            await model.session.compute_each(context, cancel, run)
            residual = np.concatenate(rows)[first - 1 :]  # [S, W]
            unembed = await space.unembed(model)
            async for start, logits in unembed.chunks(residual, cancel):
                for at, row in enumerate(logits, start=first + start):
                    take(at, row)
                progress(len(tokens) + start + len(logits), steps)

        await model.session.device.survive(compute, cancel)
