"""The facts of models that pages show: of one that is loaded, offered or stored."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.base.messages import Message, message, worded
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.gpu import CPU, Device
from py_runtime.graph.tuning import KernelChoice
from py_runtime.model import AnyModel, Encoder, Model
from py_runtime.model.requirements import bytes_on_cpu

TOO_LARGE = "too_large_for_processor"
Json = dict[str, Any]


def describe_model(model: AnyModel) -> Json:
    """Describe a model that is loaded."""
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
        "is_encoder": isinstance(model, Encoder),
        "is_reranker": isinstance(model, Encoder) and model.scores_pairs,
        "calls_tools": isinstance(model, Model) and model.prompts.knows_tools,
        "sees": isinstance(model, Model) and model.image_rows is not None,
        "has_goldens": manifest.goldens is not None,
        "kernels": describe_kernels(model.kernels),
        "kv": describe_caches(model),
        "device": describe_device(model.graph.device),
        "draft": describe_draft(model),
        "head": describe_head(model),
        "adapters": [],
    }
    return {**described, **in_a_line(model_messages(described))}


def describe_caches(model: AnyModel) -> Json | None:
    """Describe how keys and values of the context are kept, and why so; None: none are."""
    if isinstance(model, Encoder):
        return None
    return {"type": model.caches.name, "chosen": model.caches.why}


def describe_draft(model: AnyModel) -> Json | None:
    """Describe the smaller model that proposes tokens; None: there is none."""
    if isinstance(model, Encoder) or model.draft is None:
        return None
    manifest, held = model.draft.manifest, model.draft.graph.memory.peak
    return {"name": manifest.name, "size": manifest.size, "gpu_bytes": held}


def describe_head(model: AnyModel) -> Json | None:
    """Describe the model's own head that proposes tokens, or why it goes without the one it has.

    None: it has none, or a draft proposes in its place.
    """
    if isinstance(model, Encoder) or (model.head is None and model.head_fault is None):
        return None
    held = 0 if model.head is None else model.head.graph.memory.peak
    return {"gpu_bytes": held, "fault": model.head_fault}


def describe_device(device: Device) -> Json:
    """Describe what kind of device it is; a CPU has threads."""
    return {"kind": device.kind, "threads": device.threads}


def describe_kernels(choice: KernelChoice) -> Json:
    """Describe which kernels run, and why those."""
    target = choice.target
    measured = [
        {
            "kernels": name,
            "one_token_us": round(1e6 * times.one_token, 1),
            "many_tokens_us": round(1e6 * times.many_tokens, 1),
        }
        for name, times in choice.times.items()
    ]
    chosen = {"chosen": choice.why, "measured": measured}
    return {"name": target.kernels, **asdict(target), **chosen}


def describe_offer(entry: Json, device: Device) -> Json:
    """Describe a model before it is loaded, and whether the device can hold it."""
    if "error" in entry:
        messages = [message("model_faulty", fault=entry["error"])]
    else:
        messages = model_messages(entry)
    return {**in_a_line(messages), **fit(entry, device)}


def describe_stored(entry: Json) -> Json:
    """Describe a model that this browser keeps, or the part of it that has arrived."""
    messages = [message("model_name", name=entry["name"])]
    messages.append(message("model_size", size=entry["bytes"]))
    if not entry["complete"]:
        messages.append(message("stored_in_part"))
    return {**entry, **in_a_line(messages)}


def in_a_line(messages: list[Message]) -> Json:
    """Return messages for pages that word them, and the same as a line of English."""
    return {"messages": messages, "facts": worded(messages)}


def model_messages(model: Json) -> list[Message]:
    """Return what is known of a model; one that could not be listed whole has less."""
    parts: dict[str, Callable[[Any], Message]] = {
        "parameters": lambda count: message("model_parameters", parameters=count),
        "size": lambda size: message("model_size", size=size),
        "context": lambda tokens: message("model_context", tokens=tokens),
        "gpu_bytes": lambda gpu_bytes: message("model_gpu_memory", gpu_bytes=gpu_bytes),
        "quantisation": lambda name: message("model_quantisation", quantisation=name),
    }
    return [tell(model[name]) for name, tell in parts.items() if model.get(name)]


def fit(model: Mapping[str, Any], device: Device) -> Json:
    """Say whether this device can hold a model, and why not; nothing where that is not known.

    A GPU has a limit of one buffer, the CPU one of all memory.
    """
    needed = model.get("largest_buffer")
    if needed is None:
        return {}
    limit, code = min(device.limits[name] for name in NEEDED_LIMITS), "too_large_for_gpu"
    if device.kind == CPU:
        needed, code = bytes_on_cpu(model.get("gpu_bytes", 0), model.get("size", 0)), TOO_LARGE
    if needed <= limit:
        return {"fits_gpu": True}
    unfit = message(code, needed=needed, limit=limit)
    return {"fits_gpu": False, "unfit": unfit, "fit": worded(unfit)}


def with_smaller_models(
    error: GpuOutOfMemoryError, listed: list[Json], url: str, url_of: Callable[[Json], str]
) -> GpuOutOfMemoryError:
    """Return the error of a model that the GPU's memory cannot hold, with those that it can."""
    needed = {url_of(entry): float(entry.get("gpu_bytes") or math.inf) for entry in listed}
    limit = needed.get(url, math.inf)
    smaller = [
        message("smaller_model", name=entry["name"], gpu_bytes=entry["gpu_bytes"])
        for entry in listed
        if needed[url_of(entry)] < limit
    ]
    if not smaller:
        return error
    return GpuOutOfMemoryError(message("smaller_models", fault=error.wording, models=smaller))
