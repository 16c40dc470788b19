"""What web/worker.js calls: open the GPU, and run a reader's Python beside the live engine."""

import sys
import traceback
from typing import Any

import numpy as np
from pyodide.code import eval_code_async

import py_runtime
from py_runtime import gpu
from py_runtime.errors import InpageError
from py_runtime.jsonable import dumps

# The names a reader finds in `await inpage.python(code)`; what they define stays for the next call.
namespace: dict[str, Any] = {"__name__": "__inpage__", "np": np, "gpu": gpu}


async def open_gpu(site: str) -> str:
    """Opens the device; it and the site's address join the namespace. A failure says its code."""
    try:
        device = await gpu.request_device()
    except InpageError as error:
        return dumps({"error": {"code": error.code, "message": str(error)}})
    namespace.update(device=device, site=site)
    return dumps(
        {
            "result": {
                "adapter": device.adapter,
                "features": sorted(device.features),
                "limits": device.limits,
                "versions": {
                    "inpage": py_runtime.__version__,
                    "python": sys.version.split()[0],
                    "numpy": np.__version__,
                },
            }
        }
    )


async def run_python(code: str) -> str:
    """The value of the last expression, or the exception with its Python traceback, as JSON."""
    try:
        return dumps({"result": await eval_code_async(code, namespace, filename="<inpage.python>")})
    except BaseException as error:  # whatever the reader's code raises is theirs to see
        lines = traceback.format_exception(error)
        return dumps(
            {
                "error": {
                    "code": error.code if isinstance(error, InpageError) else "python_error",
                    "message": f"{type(error).__name__}: {error}",
                    "traceback": "".join(lines),
                }
            }
        )
