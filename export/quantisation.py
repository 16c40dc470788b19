"""The quantisations that float weights can get. No torch here: `--help` should not wait for it."""

QUANTISATIONS = ("q4gsw", "q4", "q8", "none")
