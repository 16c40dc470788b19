"""Names that may stand where the cursor is: of live objects, of parameters, of Python itself.

Nothing is called for it: a property is listed, but not looked into.
"""

import builtins
import inspect
import keyword
import re
from types import ModuleType
from typing import Any

PATH = re.compile(r"(?P<of>(?:[^\W\d]\w*\.)*)(?P<begun>[^\W\d]?\w*)\Z")
CALL = re.compile(r"(?P<path>[^\W\d]\w*(?:\.[^\W\d]\w*)*)\((?P<given>[^()]*)\Z")
MAX_NAMES = 400

Option = dict[str, str]


def complete(text: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return where the name at the end of `text` begins, and what it may become."""
    found = PATH.search(text)
    if found is None:
        return {"begin": len(text), "options": []}
    begun = found["begun"]
    path = found["of"].split(".")[:-1]
    options = _members(path, namespace) if path else _names(text, namespace)
    fitting = [each for each in options if each["label"].lower().startswith(begun.lower())]
    if not begun.startswith("_"):
        fitting = [each for each in fitting if not each["label"].startswith("_")]
    return {"begin": found.start("begun"), "options": fitting[:MAX_NAMES]}


def _members(path: list[str], namespace: dict[str, Any]) -> list[Option]:
    try:
        value = _follow(path, namespace)
    except LookupError:
        return []
    return [_option(name, _static(value, name)) for name in sorted(dir(value))]


def _follow(path: list[str], namespace: dict[str, Any]) -> Any:
    """Walk from a name to what it holds; LookupError where that would run somebody's code."""
    first, *rest = path
    if first not in namespace and not hasattr(builtins, first):
        raise LookupError(first)
    value = namespace.get(first, getattr(builtins, first, None))
    for name in rest:
        found = _static(value, name)
        if found is None or isinstance(found, property):
            raise LookupError(name)
        value = getattr(value, name)
    return value


def _static(value: Any, name: str) -> Any:
    try:
        return inspect.getattr_static(value, name, None)
    except Exception:  # objects may be as odd as they like
        return None


def _names(text: str, namespace: dict[str, Any]) -> list[Option]:
    own = [name for name in sorted(namespace) if not name.startswith("__")]
    options = [*_parameters(text, namespace), *(_option(name, namespace[name]) for name in own)]
    others = [name for name in dir(builtins) if name not in namespace]
    options += [_option(name, getattr(builtins, name)) for name in others]
    return options + [{"label": name, "type": "keyword"} for name in keyword.kwlist]


def _parameters(text: str, namespace: dict[str, Any]) -> list[Option]:
    """Return the keyword names of the call that is being written."""
    call = CALL.search(text)
    if call is None:
        return []
    try:
        function = _follow(call["path"].split("."), namespace)
        parameters = inspect.signature(function).parameters.values()
    except (LookupError, TypeError, ValueError):
        return []
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        {"label": f"{each.name}=", "type": "variable", "detail": _short(each)}
        for each in parameters
        if each.kind in by_name and f"{each.name}=" not in call["given"].replace(" ", "")
    ]


def _short(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is parameter.empty else repr(parameter.default)[:30]


def _option(name: str, value: Any) -> Option:
    option = {"label": name, "type": _kind(value)}
    text = inspect.getdoc(value) if option["type"] != "variable" else None
    if text:
        option["info"] = text.split("\n\n")[0][:300]
    return option


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "namespace"
    if isinstance(value, type):
        return "class"
    if isinstance(value, property):
        return "property"
    return "function" if callable(value) else "variable"
