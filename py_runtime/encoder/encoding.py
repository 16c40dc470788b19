"""The way a text encoder asks to be used, as sentence-transformers' files say it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
POOLING_CONFIG = "config.json"  # in the folder that modules.json names
DENSE, IDENTITY = "Dense", "Identity"
MEAN, CLS, LAST = "mean", "cls", "last"
FOLDER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
ANOTHER = "get another model"


def _mean(length: int) -> list[float]:
    return [1 / length] * length


def _first(length: int) -> list[float]:
    return [1.0, *[0.0] * (length - 1)]


def _last(length: int) -> list[float]:
    return [*[0.0] * (length - 1), 1.0]


def _mean_by_root(length: int) -> list[float]:
    return [length**-0.5] * length


def _weighted_mean(length: int) -> list[float]:
    whole = length * (length + 1) / 2
    return [place / whole for place in range(1, length + 1)]


# What each token gives to its text's vector, by the ways of pooling and a text's length.
POOLINGS: dict[str, Callable[[int], list[float]]] = {
    MEAN: _mean,
    CLS: _first,
    LAST: _last,
    "mean_sqrt_len": _mean_by_root,
    "weightedmean": _weighted_mean,
}
# The flags of 1_Pooling/config.json; newer files have one of the names as `pooling_mode`.
FLAGS = {
    "pooling_mode_mean_tokens": MEAN,
    "pooling_mode_cls_token": CLS,
    "pooling_mode_lasttoken": LAST,
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_max_tokens": "max",
}
NAMES = {"lasttoken": LAST}
KNOWN_MODULES = ("Transformer", "Pooling", DENSE, "Normalize")


@dataclass(frozen=True)
class Encoding:
    """The steps from a text to a vector: prompt, ids, and what is made of hidden states."""

    pooling: str = MEAN
    is_normalised: bool = True
    prompts: Mapping[str, str] = field(default_factory=dict)  # that stand before texts, by names
    default_prompt: str | None = None  # its name

    def shares(self, length: int, pooling: str | None = None) -> list[float]:
        """Return what each of a text's tokens gives to its vector: [S]."""
        return POOLINGS[self._checked(pooling)](length)

    def _checked(self, pooling: str | None) -> str:
        if pooling is not None and pooling not in POOLINGS:
            raise RequestError(f"pooling must be one of {', '.join(POOLINGS)}", "pooling")
        return pooling or self.pooling

    def prompt(self, name: object) -> str:
        """Return what stands before a text: the model's own default where no name is given."""
        if name is None:
            return self.prompts[self.default_prompt] if self.default_prompt is not None else ""
        if not isinstance(name, str) or name not in self.prompts:
            known = ", ".join(self.prompts)
            found = f"those of this model are {known}" if known else "this model has none"
            raise RequestError(f"there is no prompt {name!r:.100}: {found}", "prompt_name")
        return self.prompts[name]


def pooling_folder(modules: Any) -> str | None:
    """Return the folder of the pooling's config; None where modules.json names none."""
    return next(iter(_folders(modules, "Pooling")), None)


def dense_folders(modules: Any) -> list[str]:
    """Return the folders of products behind the pooling, in their order."""
    return _folders(modules, DENSE)


def check_dense(config: Any) -> None:
    """Check that such a product is nothing but one."""
    config = config if isinstance(config, dict) else {}
    act = config.get("activation_function", IDENTITY)
    is_plain = isinstance(act, str) and act.rpartition(".")[2] == IDENTITY
    if config.get("bias", True) or not is_plain:
        raise ModelError("it has products with biases or activations behind its pooling", ANOTHER)


def _folders(modules: Any, kind: str) -> list[str]:
    found = []
    for module in modules if isinstance(modules, list) else ():
        if _kind(module) == kind:
            path = module.get("path")
            if not isinstance(path, str) or not FOLDER_NAME.fullmatch(path):
                raise ModelError(f"{MODULES} has the path {short(path)}", ANOTHER)
            found.append(path)
    return found


def read_encoding(modules: Any, pooling: Any, settings: Any) -> Encoding:
    """Read the parsed files, each None if there is none; ModelError for what cannot be done.

    Without modules.json a model is no more than an encoder: the mean at length 1 suits most.
    """
    prompts, default = _read_prompts(settings)
    if modules is None:
        return Encoding(prompts=prompts, default_prompt=default)
    kinds = [_kind(module) for module in modules] if isinstance(modules, list) else []
    if kinds[:1] != ["Transformer"] or "Pooling" not in kinds:
        raise ModelError(f"{MODULES} does not begin with an encoder and a pooling", ANOTHER)
    unknown = [kind for kind in kinds if kind not in KNOWN_MODULES]
    if unknown:
        raise ModelError(
            f"{MODULES} has the module {short(unknown[0])}, which is not supported", ANOTHER
        )
    if prompts and isinstance(pooling, dict) and pooling.get("include_prompt") is False:
        raise ModelError("its pooling leaves prompts out, which is not supported", ANOTHER)
    return Encoding(_read_pooling(pooling), "Normalize" in kinds, prompts, default)


def _kind(module: Any) -> str:
    kind = module.get("type") if isinstance(module, dict) else None
    return kind.rpartition(".")[2] if isinstance(kind, str) else ""


def _read_pooling(config: Any) -> str:
    if not isinstance(config, dict):
        return MEAN
    chosen = [name for flag, name in FLAGS.items() if config.get(flag) is True]
    named = config.get("pooling_mode")
    if isinstance(named, str):
        chosen = [NAMES.get(named, named)]
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        found = " and ".join(map(short, chosen)) or "none"
        raise ModelError(f"its pooling is {found}, which is not supported", ANOTHER)
    return chosen[0]


def _read_prompts(settings: Any) -> tuple[dict[str, str], str | None]:
    if not isinstance(settings, dict):
        return {}, None
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    are_texts = isinstance(prompts, dict) and all(isinstance(t, str) for t in prompts.values())
    if not are_texts or not (default is None or default in prompts):
        raise ModelError(f"{SETTINGS} has prompts that are no texts by names", ANOTHER)
    return prompts, default
