"""Views, natively or in the page, on behalf of the tests here."""

from typing import Any

from py_runtime.glass.views.attention import attention
from py_runtime.glass.views.lens import lens
from py_runtime.glass.views.neurons import neurons
from py_runtime.glass.views.norms import norms
from py_runtime.glass.views.patch import patch
from py_runtime.gpu import Device
from py_runtime.model import Model


async def views(
    device: Device,
    where: str,
    tokens: list[int],
    others: list[int],
    attending: int = 1,
    has_neurons: bool = True,
) -> Any:
    """Return each view of some tokens, as plain data; of attention that of one layer."""
    model = await Model.load(device, where)
    steps: list[tuple[int, int]] = []
    try:
        return {
            "lens": await lens(model, tokens, race=3, at=-2, positions=[4, -1]),
            "attention": await attention(model, tokens, layers=attending),
            "attention of some": await attention(
                model, tokens, layers=attending, positions=[-3, -2, -1], labels=False
            ),
            "norms": await norms(model, tokens, outliers=3),
            "neurons": await neurons(model, tokens, k=4, promoted=3, position=5)
            if has_neurons
            else None,
            "patch": await patch(
                model,
                tokens,
                others,
                [5, 6],
                progress=lambda done, total: steps.append((done, total)),
            ),
            "steps": [list(step) for step in steps],
        }
    finally:
        model.unload()


async def labelled(device: Device, where: str, text: str) -> Any:
    model = await Model.load(device, where)
    try:
        return (await attention(model, text))["heads"]
    finally:
        model.unload()
