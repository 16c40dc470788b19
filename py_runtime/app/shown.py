"""What a page shows of models and of loads, as plain data and in words."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from py_runtime.app.plain_words import fit, plain_words
from py_runtime.base.progress import DOWNLOAD, UPLOAD
from py_runtime.base.sizes import in_words
from py_runtime.graph.tuning import KernelChoice
from py_runtime.model import Model

Json = dict[str, Any]
Emit = Callable[[Json], None]


class LoadMeter:
    """Tells how far a load is: the phase, what it counts, the seconds, and one overall fraction."""

    def __init__(self, emit: Emit) -> None:
        self.downloaded = False
        self.download_share = 0.0  # of a load that downloads all of it before the rest begins
        self._speed = Speed()
        self._emit = emit
        self._started = time.perf_counter()
        self._fraction = 0.0  # of the weights that are on the GPU; never falls

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.downloaded |= phase == DOWNLOAD and done > 0
        share, first = done / total if total else 1.0, self.download_share
        if phase == UPLOAD:
            self._fraction = max(self._fraction, first + (1 - first) * share)
        elif phase == DOWNLOAD:
            self._fraction = max(self._fraction, first * share)
        unit = in_words if phase in (DOWNLOAD, UPLOAD) else str
        told: Json = {
            "phase": phase,
            "done": done,
            "total": total,
            "text": f"{unit(done)} of {unit(total)}",
            "seconds": now - self._started,
            "fraction": self._fraction,
        }
        speed = self._speed.after(now, done) if phase == DOWNLOAD and done < total else None
        if speed:
            left = (total - done) / speed
            told |= {"bytes_per_second": speed, "seconds_left": left}
            told["text"] += f" · {in_words(int(speed))}/s · {time_in_words(left)} left"
        self._emit(told)


class Speed:
    """Of the last seconds: what was there before the first look counts for nothing."""

    SECONDS = 10.0
    MIN_SECONDS = 1.0  # before that, nobody can tell

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, now: float, done: int) -> float | None:
        """Bytes a second, or None."""
        self._seen.append((now, done))
        while now - self._seen[0][0] > self.SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        start, before = self._seen[0]
        return (done - before) / (now - start) if now - start >= self.MIN_SECONDS else None


def time_in_words(seconds: float) -> str:
    """As rough as people want it."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def describe_model(model: Model) -> Json:
    """A model that is loaded."""
    manifest = model.manifest
    described: Json = {
        "name": manifest.name,
        "parameters": manifest.parameters,
        "context": manifest.context,
        "size": manifest.size,
        "gpu_bytes": model.graph.memory.peak,
        "quantisation": manifest.quantisation,
        "source": manifest.source,
        "has_chat_template": model.chat_template is not None,
        "has_goldens": manifest.goldens is not None,
        "kernels": describe_kernels(model.kernels),
    }
    return {**described, "facts": facts(described), "plain": plain_words(described)}


def describe_kernels(choice: KernelChoice) -> Json:
    """Which kernels run, and why those."""
    target = choice.target
    return {"name": target.kernels, **asdict(target), "chosen": choice.why}


def describe_offer(entry: Json, limits: Mapping[str, int]) -> Json:
    """A model before it is loaded; `limits` are the device's."""
    action = "Start chatting"
    if entry.get("kept_bytes") and not entry["stored"]:
        action = f"Go on ({in_words(entry['kept_bytes'])} of {in_words(entry['size'])} are here)"
    elif "size" in entry and not entry["stored"]:
        action += f" ({in_words(entry['size'])}, once)"
    fault = f"Cannot be loaded: {entry['error']}." if "error" in entry else ""
    words = {"facts": fault or facts(entry), "plain": fault or plain_words(entry), "action": action}
    return {**words, **fit(entry, limits)}


def facts(model: Json) -> str:
    """A model in a line; of one that could not be listed whole, what is known."""
    parts: dict[str, Callable[[Any], str]] = {
        "parameters": lambda count: f"{count / 1e6:.1f} million parameters",
        "size": in_words,
        "context": lambda tokens: f"context of {tokens} tokens",
        "gpu_bytes": lambda nbytes: f"{in_words(nbytes)} of GPU memory",
        "quantisation": str,
    }
    return " · ".join(words(model[name]) for name, words in parts.items() if model.get(name))


def what_fits(listed: list[Json], url: str, url_of: Callable[[Json], str]) -> str:
    """Advice after the GPU's memory did not suffice."""
    needed = {url_of(entry): float(entry.get("gpu_bytes") or math.inf) for entry in listed}
    limit = needed.get(url, math.inf)
    smaller = [
        f"{entry['name']} ({in_words(entry['gpu_bytes'])})"
        for entry in listed
        if needed[url_of(entry)] < limit
    ]
    return f". Smaller models here: {', '.join(smaller)}" if smaller else ""
