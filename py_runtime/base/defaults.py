"""The default sampling settings, the same in the page, the terminal and the API.

They stand here rather than beside the settings, so that the server can send them without numpy.
"""

import os

from py_runtime.base.errors import RequestError

# They suit small models: those ramble when hot, and say the same again and again when cold.
DEFAULTS = {
    "temperature": 0.3,
    "top_p": 0.9,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.1,
}

GPU, CPU = KINDS = ("gpu", "cpu")  # of devices
# The environment variable that says which device is used where none is asked for. For pages, the
# server's environment counts.
DEVICE_VARIABLE = "INPAGE_DEVICE"


def device_of_environment() -> str | None:
    """Return the kind of device that the environment asks for, if it does; refuse all others."""
    kind = os.environ.get(DEVICE_VARIABLE) or None
    if kind not in (None, *KINDS):
        names = " or ".join(KINDS)
        raise RequestError(f"{DEVICE_VARIABLE} is {kind!r:.100} here; it must be {names}", "device")
    return kind
