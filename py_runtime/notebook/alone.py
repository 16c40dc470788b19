"""Code that runs in a Python of its own, without an engine: what answers hold, for example."""

import json
import traceback
from collections.abc import Callable

from py_runtime.base.cancel import CancelToken
from py_runtime.notebook import cell, plot, printed
from py_runtime.notebook.packages import missing_words

FILE = "<answer>"  # in tracebacks

answer = cell.answer

printed.listen()
cell.listen()


async def run(code: str, tell: Callable[[str], None]) -> str:
    """Run code, with names of its own; `tell` takes events as JSON, and so is what went wrong."""
    offered = {
        "__name__": "__main__",
        "ask": cell.ask,
        "display": cell.display,
        "plot": plot,
        "progress": cell.progress,
    }
    running = cell.Cell(lambda told: tell(json.dumps(told)), CancelToken())
    try:
        await running.run(code, offered, FILE)
    except BaseException as error:  # somebody's code may raise anything
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != FILE:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
        hint = missing_words(error) if isinstance(error, ModuleNotFoundError) else ""
        return json.dumps({"text": text, "hint": hint})
    return ""
