"""The views into a model, by the names that pages call them by."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from py_runtime.app.token_views import prompt_view, score_view, tokens_view
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short

if TYPE_CHECKING:
    from py_runtime.app.load_progress import Emit
    from py_runtime.model import Model

View = Callable[..., Awaitable[Any]]
VIEWS: dict[str, View] = {"prompt": prompt_view, "score": score_view, "tokens": tokens_view}


async def look(
    model: "Model", view: Any, fields: Mapping[str, Any], emit: "Emit", cancel: CancelToken
) -> Any:
    """Return what a view shows of a model."""
    if view not in VIEWS:
        raise RequestError(f"there is no view {short(view)}: {', '.join(VIEWS)}", "view")
    function = VIEWS[view]
    known = signature(function).parameters
    for name in fields:
        if name not in known or name in ("model", "emit", "cancel"):
            raise RequestError(f"the view {view} has no field {short(name)}", name)
    told = {"emit": emit, "cancel": cancel}
    return await function(model, **fields, **{name: told[name] for name in told if name in known})
