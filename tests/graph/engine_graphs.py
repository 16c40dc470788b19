"""Small graphs for the engine's tests, and plain functions to load and run them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.dtypes import F32, I64
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter, Ref
from tests.runners import wait

WIDTH = 8


def load(device: Device, writer: ProgramWriter) -> Graph:
    return wait(Graph.load(device, writer.program(), writer.constants))


def run(graph: Graph, *inputs: Any, outputs: Sequence[int] | None = None) -> list[np.ndarray]:
    return wait(graph.run(inputs, outputs))


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, count, WIDTH), np.float32)


def norm_of(writer: ProgramWriter, x: Ref, max_rows: int = 16) -> Ref:
    out = writer.tensor((1, max_rows, WIDTH), F32)
    weight = writer.constant("weight", np.ones(WIDTH, np.float32))
    writer.op("et_vk.rms_norm.default", x, weight, 1e-5, out)
    return out


def norm_graph(chain: int = 1, max_rows: int = 16) -> ProgramWriter:
    """Write x → rms_norm, `chain` times over."""
    writer = ProgramWriter()
    value = writer.input("x", (1, max_rows, WIDTH), F32, dynamic=(1,))
    for _ in range(chain):
        value = norm_of(writer, value, max_rows)
    writer.output(value)
    return writer


def decoder_like() -> tuple[ProgramWriter, int]:
    """x, pos → rms_norm → attention at pos over a context of 64; gives the position's id too."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 48, WIDTH), F32, dynamic=(1,))
    pos_input = writer.input("pos", (1,), I64)
    pos = writer.symint("start")
    writer.op("et_vk.select_as_symint.default", pos_input, 0, 0, pos)
    h = norm_of(writer, x, 48)
    q = writer.tensor((1, 48, 2, 4), F32)
    length = writer.symint("length")
    writer.op("sym_size.int", h, 1, length)
    writer.op("aten.view_copy.default", h, [1, length, 2, 4], q)
    caches = [writer.state(name, (1, 64, 2, 4), F32) for name in ("k_cache", "v_cache")]
    out = writer.tensor((1, 48, 2, 4), F32)
    options = (1, None, 0.0, True, None)
    writer.op("sdpa_with_kv_cache.default", q, q, q, *caches, pos, *options, out)
    writer.output(out)
    return writer, pos.id
