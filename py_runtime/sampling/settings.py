"""The sampling settings: their neutral values and allowed ranges."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from py_runtime.base.errors import RequestError

# Where OpenAI has the setting, its range. The repetition penalty's keeps every logit finite.
NUMBERS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.01, 100),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
}
MIN_BIAS, MAX_BIAS = -100, 100
MIN_SEED, MAX_SEED = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling settings; the defaults are neutral and draw from the model's own distribution."""

    temperature: float = 1.0  # 0: greedy
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0  # over prompt and answer, as transformers does
    frequency_penalty: float = 0.0  # over the answer, as OpenAI does
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)  # token id → added to its logit
    seed: int | None = None

    def check(self, vocabulary: int) -> None:
        """Raise a RequestError that names the setting and its allowed range."""
        for name, (least, most) in NUMBERS.items():
            value = getattr(self, name)
            if not _is_number(value) or not least <= value <= most:
                raise _error(name, f"must be a number from {least} to {most}", value)
        if not _is_integer(self.top_k) or self.top_k < 0:
            raise _error("top_k", "must be an integer from 0 on, where 0 is off", self.top_k)
        if self.seed is not None and not (
            _is_integer(self.seed) and MIN_SEED <= self.seed <= MAX_SEED
        ):
            raise _error("seed", f"must be an integer from {MIN_SEED} to {MAX_SEED}", self.seed)
        self._check_bias(vocabulary)

    def _check_bias(self, vocabulary: int) -> None:
        name = "logit_bias"
        if not isinstance(self.logit_bias, Mapping):
            raise _error(name, "must map token ids to numbers", self.logit_bias)
        for token, bias in self.logit_bias.items():
            if not _is_integer(token) or not 0 <= token < vocabulary:
                raise _error(name, f"must have token ids from 0 to {vocabulary - 1}", token)
            if not _is_number(bias) or not MIN_BIAS <= bias <= MAX_BIAS:
                expected = f"of token {token} must be a number from {MIN_BIAS} to {MAX_BIAS}"
                raise _error(name, expected, bias)


def _is_number(value: Any) -> bool:
    """Return whether this is a number that a float can hold, which a Python int may not be."""
    is_real = not isinstance(value, bool) and isinstance(value, Real)
    return is_real and (isinstance(value, Integral) or not math.isnan(value))


def _is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)


def _error(name: str, expected: str, value: Any) -> RequestError:
    return RequestError(f"{name} {expected}, got {reprlib.repr(value)}", name)
