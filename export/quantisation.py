"""What can be asked of float weights. No torch here: `--help` should not wait for it."""

QUANTISATIONS = ("q4gsw", "q4", "q8", "none")
