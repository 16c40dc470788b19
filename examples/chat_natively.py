"""An answer in a terminal: python -m examples.chat_natively models/NAME 'What is gravity?'."""

import asyncio
import sys

from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.gpu import request_device
from py_runtime.model import Model


async def main(folder: str, question: str) -> None:
    """Load the model in `folder`, and print its answer as it is written."""
    use_software_if_alone()
    model = await Model.load(await request_device(), folder)
    messages = [{"role": "user", "content": question}]
    async for piece in model.chat(messages, temperature=0, max_tokens=60):
        print(piece.text, end="", flush=True)
    print()
    model.unload()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
