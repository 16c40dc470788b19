"""Graphs on the GPU: built once at the largest shapes, run at any live shape."""

from py_runtime.graph.graph import Graph

__all__ = ["Graph"]
