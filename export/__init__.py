"""The export from PyTorch to a graph that the page runs; torch lives on this side only."""
