"""The entry points for web/worker.js: opens a device, then starts calls and tells how they go.

A call has a number, a name and named fields, which come as one JSON object (`Calls` in
web/calls.d.ts). What it tells meanwhile, and its answer, go through the worker's `emit`: no proxy
is made that could leak. Users' Python runs beside the live
engine, in a namespace that stays; what the engine itself needs is not in it, so that nothing a user
does there can keep a call without its answer.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from inspect import signature
from types import ModuleType, TracebackType
from typing import Any, cast

import numpy as np
from pyodide.code import eval_code_async

import py_runtime
from py_runtime import gpu
from py_runtime.app import interrupts, notebook_calls
from py_runtime.app.engine import CALLS, Engine
from py_runtime.app.jsonable import dumps
from py_runtime.app.model_facts import describe_device
from py_runtime.app.notebook_calls import NotebookCalls
from py_runtime.app.outer_page import OuterPage
from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError, InpageError
from py_runtime.bridge import opfs
from py_runtime.folder import notes
from py_runtime.graph.device_choice import choose_device
from py_runtime.graph.tuning import choose_kernels
from py_runtime.model import Model
from py_runtime.notebook import cell, packages, printed
from py_runtime.notebook.shown_value import shown_value


async def load(where: str, data: Sequence[str] = (), methods: Sequence[str] | None = None) -> Any:
    """Load a .pte file of this site onto the device.

    Write `graph = await load("model.pte")`, then `await graph.run([...])`. `data` lists its .ptd
    files, and `methods` those to load, if not all.
    """
    from py_runtime import pte  # few need it

    device = _engine().device
    kernels = await choose_kernels(device, notes)
    return await pte.load(where, device, data, methods, target=kernels.target)


# The names a user finds in `await inpage.python(code)`; what they define stays for the next call.
OFFERED: dict[str, Any] = {
    "__name__": interrupts.USERS_MODULE,
    "np": np,
    "gpu": gpu,
    "Model": Model,
    "load": load,
}
namespace: dict[str, Any] = dict(OFFERED)
_notebook = NotebookCalls(namespace)

USERS_FILE = "<inpage.python>"  # in tracebacks
CELLS_FILE = "<cell "
USERS_CALLS = ("python", "cell")
MODULES = sys.modules  # what Python imports from, whatever a user makes of that name
BROKEN = dumps(
    {
        "error": {
            "code": "python_error",
            "message": "an exception that cannot be described: if others follow, Python is broken "
            "here, and `inpage.restart()` or reloading the page brings it back",
        }
    }
)

Emit = Callable[[int, str, bool], None]  # (call, JSON, whether it is the answer)
NOTICE = 0  # no call has this number

_emit: Emit
_own_engine: Engine
_running: dict[int, tuple[CancelToken, asyncio.Future[None]]] = {}
_shown: dict[str, Any] = {}  # what the namespace had from the engine


async def open_engine(
    site: str,
    emit: Emit,
    wanted: Callable[[], int],
    hub: str | None = None,
    outer_page: str | None = None,
    kind: str | None = None,
) -> str:
    """Open the device and make the engine; return JSON with the report, or the error's code.

    `wanted` says which call an interrupt is for; `hub` is the Hub's address where the page may ask;
    `outer_page` is JSON of somebody else's page; `kind` is that of the device, if it was chosen.
    """
    global _emit, _own_engine
    _emit = emit
    interrupts.listen(wanted, _running)
    printed.listen()
    cell.listen()
    try:
        device = await choose_device(kind, notes=notes)
    except InpageError as error:
        return dumps({"error": _describe(error)})
    found = OuterPage.from_json(outer_page) if outer_page else None
    if found is not None and not found.storage:
        opfs.switch_off()
    _own_engine = engine = Engine(device, site, hub, found)
    OFFERED.update(_notebook.offered, engine=engine, site=site)
    _refresh_namespace()
    notices.listen(_pass_on)
    return dumps(
        {
            "result": {
                "device": describe_device(device),
                "adapter": device.adapter,
                "features": sorted(device.features),
                "limits": device.limits,
                "facts": _facts(device),
                "hub": hub,
                "versions": {
                    "inpage": py_runtime.__version__,
                    "python": sys.version.split()[0],
                    "numpy": np.__version__,
                },
            }
        }
    )


def _facts(device: gpu.Device) -> str:
    """Return the machine in a line of names."""
    adapter = device.adapter
    if device.kind == gpu.CPU:
        return " · ".join([adapter.description, f"Python {sys.version.split()[0]}"])
    names = (adapter.vendor, adapter.architecture, adapter.description, *sorted(device.features))
    return " · ".join(filter(None, [*names, f"Python {sys.version.split()[0]}"]))


def start(number: int, name: str, fields_json: str) -> None:
    """Begin a call, `python` or one of the engine's; the worker's `emit` tells how it went."""
    cancel = CancelToken()
    task = asyncio.ensure_future(_answer(number, name, fields_json, cancel))
    _running[number] = (cancel, task)


def cancel(number: int) -> None:
    """Cancel the call with this number, unless it has ended."""
    if number in _running:
        _running[number][0].cancel()


async def _answer(number: int, name: str, fields_json: str, cancel: CancelToken) -> None:
    def emit(value: Any) -> None:
        _emit(number, dumps(value), False)

    interrupts.in_call.set(number)
    try:
        call = _call_named(name)
        told: dict[str, Any] = {"emit": emit, "cancel": cancel}
        wanted = {key: told[key] for key in told if key in signature(call).parameters}
        answer = dumps({"result": await call(**json.loads(fields_json), **wanted)})
    except BaseException as error:  # a user's code may raise anything
        answer = _error_json(error, is_users_code=name in USERS_CALLS)
    finally:
        interrupts.in_call.set(interrupts.NO_CALL)
        _running.pop(number, None)
    _refresh_namespace()
    _emit(number, answer, True)


def _call_named(name: str) -> Callable[..., Any]:
    if name == "python":
        return _python
    if name in notebook_calls.CALLS:
        return cast("Callable[..., Any]", getattr(_notebook, name))
    if name in CALLS:
        return cast("Callable[..., Any]", getattr(_engine(), name))
    raise InpageError(f"the engine has no call '{name}'")


# Calls -------------------------------------------------------------------------------------------


def _engine() -> Engine:
    return _own_engine


async def device_for(kind: str | None, threads: int | None) -> gpu.Device:
    """Return the device for `import inpage` beside the page's own model."""
    return await _engine().device_for(kind, threads)


async def _python(
    *, code: str, is_told: bool = False, as_text: bool = False, emit: Any, cancel: CancelToken
) -> Any:
    """Run a user's code and return its value.

    `is_told`: what it prints goes to `emit`; `as_text`: its value comes as text for people.
    """
    task = asyncio.current_task()

    def stop() -> None:
        if task is not None:
            task.cancel()

    cancel.on_cancel(stop)
    modules = dict(sys.modules)
    try:
        with printed.printing(emit) if is_told else nullcontext():
            value = await eval_code_async(code, namespace, filename=USERS_FILE)
            return shown_value(value) if as_text else value
    except asyncio.CancelledError:
        cancel.check()  # else the code raised it
        raise
    finally:
        _bring_back(modules)


def _bring_back(modules: dict[str, ModuleType]) -> None:
    """Mend an interpreter that has lost its modules, as after `sys.modules.clear()`.

    Without them nothing can be imported, and not even an error be described. Whoever removes a
    single module, to import it anew, has it so.
    """
    if sys.modules is not MODULES:
        sys.modules = MODULES
    if "builtins" not in MODULES or "sys" not in MODULES:
        for name, module in modules.items():
            MODULES.setdefault(name, module)


def _error_json(error: BaseException, is_users_code: bool) -> str:
    """Return an answer in any case: a user's exception may even fail at being described."""
    try:
        return dumps({"error": _describe(error, is_users_code)})
    except BaseException:
        return BROKEN


def _describe(error: BaseException, is_users_code: bool = False) -> dict[str, Any]:
    """Describe an error: our own by its message, a user's or a bug with its traceback."""
    if isinstance(error, KeyboardInterrupt) and not is_users_code:
        error = AbortedError()  # the page interrupted what did not come to an end
    described: dict[str, Any] = {"code": "python_error"}
    if isinstance(error, InpageError):
        described = {"code": error.code, "message": str(error), **error.facts()}
        if error.said:
            described |= {"reason": error.said["code"], "facts": error.said["facts"]}
        if not is_users_code:
            return described
    name = type.__dict__["__name__"].__get__(type(error))  # whatever its metaclass says
    try:
        described["message"] = f"{name}: {error}"
    except BaseException:
        described["message"] = str(name)
    begin = _users_part(error.__traceback__) if is_users_code else error.__traceback__
    if isinstance(error, ModuleNotFoundError) and is_users_code:
        described["hint"] = packages.missing_words(error)
    described["traceback"] = "".join(traceback.format_exception(type(error), error, begin))
    return described


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the user's line on: how it was reached does not concern them."""
    while trace and not trace.tb_frame.f_code.co_filename.startswith((USERS_FILE, CELLS_FILE)):
        trace = trace.tb_next
    return trace


def _refresh_namespace() -> None:
    """Update `device`, `model` and `graph` to the engine's, say after a load or a lost device.

    A user who gave a name another meaning keeps it until the engine's own changes; what they
    deleted is back for the next call.
    """
    engine = _engine()
    for name, value in OFFERED.items():
        namespace.setdefault(name, value)
    graph = engine.module or (engine.model and engine.model.graph)
    live = {"device": engine.device, "model": engine.model, "graph": graph}
    for name, value in live.items():
        if name not in namespace or name not in _shown or _shown[name] is not value:
            namespace[name] = _shown[name] = value


def _pass_on(notice: notices.Notice) -> None:
    _emit(NOTICE, dumps(notice), False)
    _refresh_namespace()
