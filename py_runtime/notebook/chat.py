"""The open chat as cells have it: its messages, and a way to go on with it."""

from typing import Any

from py_runtime.notebook import cell


class Chat:
    """The chat beside the notebook, as it was when the cell began or `send` returned."""

    def __init__(self) -> None:
        self.title = ""
        self.messages: list[dict[str, str]] = []

    def take(self, given: dict[str, Any]) -> None:
        """Take in what the page shows."""
        self.title, self.messages = given["title"], given["messages"]

    async def send(self, text: str) -> str:
        """Send a message as if it was typed, and return the model's answer."""
        given = await cell.current().ask({"kind": "send", "text": str(text)})
        self.take(given)
        if given.get("error"):
            raise cell.CellError(given["error"])
        return self.messages[-1]["content"] if self.messages else ""

    def __repr__(self) -> str:
        return f"Chat({self.title!r}, {len(self.messages)} messages)"
