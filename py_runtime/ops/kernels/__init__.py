"""Helpers that several ops share: they choose kernels, size them and give them parameters."""
