"""The calls of the notebook: cells run in the namespace of users' Python, beside the engine."""

import asyncio
from typing import Any

from py_runtime.base.cancel import CancelToken
from py_runtime.notebook import cell as cells
from py_runtime.notebook import completion, plot
from py_runtime.notebook.chat import Chat

FILE = "<cell {}>"  # in tracebacks
CALLS = ("cell", "complete_code", "answer_cell")


class NotebookCalls:
    """The notebook's side of the worker; `offered` are names that its cells find."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._chat = Chat()
        self.offered: dict[str, Any] = {
            "ask": cells.ask,
            "chat": self._chat,
            "display": cells.display,
            "plot": plot,
            "progress": cells.progress,
        }

    async def cell(
        self, *, code: str, number: int, chat: dict[str, Any], emit: Any, cancel: CancelToken
    ) -> None:
        """Run a cell; `emit` takes what it prints, shows and asks for."""
        self._chat.take(chat)
        task = asyncio.current_task()

        def stop() -> None:
            if task is not None:
                task.cancel()

        cancel.on_cancel(stop)
        try:
            await cells.Cell(emit, cancel).run(code, self._namespace, FILE.format(number))
        except asyncio.CancelledError:
            cancel.check()  # else the code raised it
            raise

    async def complete_code(self, *, text: str) -> dict[str, Any]:
        """List the names that may stand at the end of a text."""
        return completion.complete(text, self._namespace)

    async def answer_cell(self, *, number: int, value: Any) -> None:
        """Give a cell what it asked the page for."""
        cells.answer(number, value)
