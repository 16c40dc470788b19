"""How tokens are chosen where nobody says how: in the page, the terminal and the API alike.

Here, and not beside the settings themselves, so that the server needs no numpy to tell the page.
"""

# They suit small models: those ramble when hot, and say the same again and again when cold.
DEFAULTS = {
    "temperature": 0.3,
    "top_p": 0.9,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.1,
}
