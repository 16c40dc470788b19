"""A bar under a notebook's cell, which shows how far the loading of a model is."""

import sys
from html import escape
from typing import Any

from py_runtime.app.load_progress import LoadMeter


class LoadBar:
    """A bar to give to a load as its `progress`; the notebook redraws it at each step."""

    def __init__(self, where: str) -> None:
        from IPython.display import display  # there, for in_notebook() has seen it

        self._name = where.rstrip("/").rpartition("/")[2]
        self._fraction, self._text = 0.0, "…"
        self._meter = LoadMeter(self._show)
        self._handle = display(self, display_id=True)

    def __call__(self, phase: str, done: int, total: int) -> None:
        self._meter(phase, done, total)

    def end(self, text: str) -> None:
        self._show({"fraction": self._fraction, "phase": "", "text": text})

    def _show(self, told: dict[str, Any]) -> None:
        self._fraction = told["fraction"]
        self._text = f"{told['phase']} {told['text']}".strip()
        self._handle.update(self)

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self._fraction:.3f}" max="1"></progress>'
        return f"<div><strong>{escape(self._name)}</strong> {bar} {escape(self._text)}</div>"

    def __repr__(self) -> str:
        return f"{self._name}: {self._fraction:.0%} {self._text}"


def in_notebook() -> bool:
    """Return whether cells run here whose outputs can be redrawn; IPython in a terminal cannot."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None
