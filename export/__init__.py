"""The exporter: from PyTorch to a graph that the page runs. torch lives on this side only."""

import os

# Before torch is imported: threads that wait for each other should sleep. Where they spin, an
# export beside other work takes several times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
