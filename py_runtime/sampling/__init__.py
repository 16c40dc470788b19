"""Sampling: from logits to a token, and from text to the part of it that may be shown."""

from py_runtime.sampling.errors import NoFiniteLogitsError
from py_runtime.sampling.history import TokenHistory
from py_runtime.sampling.logprobs import TokenLogprob, logprobs
from py_runtime.sampling.sampler import Sampler, distribution
from py_runtime.sampling.settings import SamplingSettings
from py_runtime.sampling.stop_strings import StopStrings

__all__ = [
    "NoFiniteLogitsError",
    "Sampler",
    "SamplingSettings",
    "StopStrings",
    "TokenHistory",
    "TokenLogprob",
    "distribution",
    "logprobs",
]
