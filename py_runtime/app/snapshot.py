"""A snapshot of Python's memory: filled at set-up, completed once it is restored.

tools/snapshot.mjs takes it in Node; web/worker.js restores it, so that a page's Python starts with
everything imported. Python's files are not in it, but for the standard library's.
"""

import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import pkgutil
import random
import sys
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType

import numpy as np

import py_runtime
from py_runtime.chat.template import ChatTemplate
from py_runtime.cpu.kernel_table import MODULES, kernel_table, module_code
from py_runtime.gpu.shader_sources import all_shaders

SITE_PACKAGES = Path(np.__file__).parent.parent


def fill() -> None:
    """Import and read all that a page may want, and leave little else behind."""
    ChatTemplate("{{ messages }}").render([])
    importlib.import_module("jinja2.debug")  # which it imports when a template fails
    importlib.import_module("py_runtime.app.in_page")
    for module in pkgutil.walk_packages(py_runtime.__path__, "py_runtime."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:  # it is for use outside the page, and so is what it wants
            continue
    all_shaders()
    kernel_table()
    for name in MODULES:
        module_code(name)
    gc.collect()
    gc.freeze()  # none of it will ever be garbage: later collections need not look


def settle(wheels: str, site: str) -> None:
    """Make a restored Python like one that has just started; `wheels` is JSON, package → URL."""
    random.seed()
    # The stream itself: cells of the notebook have put a stand-in before it.
    sys.__stdout__.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.meta_path.append(LateFiles(json.loads(wheels), site))
    if np.dot(np.arange(4.0), np.ones(4)) != 6:
        raise RuntimeError("numpy does not compute in the restored Python")


class LateFiles(importlib.abc.MetaPathFinder):
    """A finder that fetches a package's wheel when the snapshot lacks a module of it."""

    def __init__(self, wheels: dict[str, str], site: str) -> None:
        self._wheels = wheels
        self._site = site

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        wheel = self._wheels.get(name.partition(".")[0])
        if wheel is None:
            return None
        with zipfile.ZipFile(BytesIO(fetch_now(self._site + wheel))) as archive:
            archive.extractall(SITE_PACKAGES)
        self._wheels = {other: url for other, url in self._wheels.items() if url != wheel}
        importlib.invalidate_caches()
        return importlib.machinery.PathFinder.find_spec(name, path, target)


def fetch_now(url: str) -> bytes:
    """Fetch and block the worker meanwhile: an import cannot wait for a promise."""
    from js import XMLHttpRequest

    request = XMLHttpRequest.new()
    request.open("GET", url, False)
    request.responseType = "arraybuffer"
    try:
        request.send()
    except Exception as error:  # Pyodide's own kind, for a network error
        raise ImportError(f"{url} did not arrive: {error}") from None
    if request.status != 200:
        raise ImportError(f"{url} answered {request.status}")
    return bytes(request.response.to_bytes())
