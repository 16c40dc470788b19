"""Decoders without torch: which families there are, what sets them apart, and their program."""
