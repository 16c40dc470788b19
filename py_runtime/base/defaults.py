"""The default sampling settings, the same in the page, the terminal and the API.

They stand here rather than beside the settings, so that the server can send them without numpy.
"""

# They suit small models: those ramble when hot, and say the same again and again when cold.
DEFAULTS = {
    "temperature": 0.3,
    "top_p": 0.9,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.1,
}

# The environment variable that says which device, gpu or cpu, is used where none is asked for. For
# pages, the server's environment counts.
DEVICE_VARIABLE = "INPAGE_DEVICE"
