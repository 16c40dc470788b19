"""Any PyTorch module as a program of the engine.

writer = export_module(model, (tokens,), ({1: Dim("tokens", min=1, max=128)},))
graph = await Graph.load(device, writer.program(), writer.constants)

The module is traced once by torch.export; dims that change from call to call are named in
`dynamic_shapes`, as torch.export wants them, each with a `max`. A KV cache is a buffer that the
module writes at a live position (see passes/fuse_cached_attention.py).
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram, export
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._pytree import tree_map

from export.errors import ExportError
from export.lower import lower_graph
from export.module_graph import ModuleGraph
from export.passes import run_passes
from export.passes.decompose import decompose
from py_runtime.base.errors import GraphError
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder
from py_runtime.graph.load_checks import check_ops
from py_runtime.program import Program, check_program
from py_runtime.program.writer import ProgramWriter


def export_module(
    module: nn.Module,
    example_inputs: tuple[Any, ...],
    dynamic_shapes: Any = None,
    name: str = "graph",
) -> ProgramWriter:
    """Return the program and its constants; ExportError says what is wrong, where and what to do.

    Inputs and outputs are the tensors and live scalars among the module's, in their order; other
    arguments are traced in.
    """
    graph = ModuleGraph(trace(module, example_inputs, dynamic_shapes))
    run_passes(graph)
    writer = lower_graph(graph, name)
    _check(writer.program())
    return writer


def trace(
    module: nn.Module, example_inputs: tuple[Any, ...], dynamic_shapes: Any
) -> ExportedProgram:
    """torch.export's graph in evaluation mode, of ops that the engine or a pass knows."""
    # An input given twice would be traced as one.
    inputs = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, example_inputs)
    try:
        with torch.no_grad(), _for_inference(module):
            exported = export(module, inputs, dynamic_shapes=dynamic_shapes, strict=False)
            return decompose(exported)
    except Exception as error:
        raise ExportError(_why_not(error)) from error


@contextmanager
def _for_inference(module: nn.Module) -> Iterator[None]:
    was_training, fast_path = module.training, torch.backends.mha.get_fastpath_enabled()
    module.eval()
    torch.backends.mha.set_fastpath_enabled(False)  # fused ops that only torch has
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        module.train(was_training)


def _check(program: Program) -> None:
    """Refuse here, where the source line is known, what the engine would refuse at load."""
    check_program(program)
    check_ops(program)
    builder = Builder(program, GUARANTEED_LIMITS)
    try:
        builder.build_ops()
    except GraphError as error:
        source = program.ops[len(builder.ops) - 1].source
        raise ExportError(f"{error} ({source})") from error


# What torch.export says, in a line -------------------------------------------------------------


def _why_not(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    if isinstance(error, GuardOnDataDependentSymNode):
        return (
            f"the module's course or shapes depend on data{_line_of_module(error)}; choose with "
            f"torch.where, or promise what holds with torch._check(…). torch says: {first}"
        )
    if first.startswith("Constraints violated"):
        reasons = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        reason = (reasons or lines)[0].split(". If you")[0]
        return f"dynamic_shapes promise more than the module can: {reason}"
    return f"torch.export cannot trace the module{_line_of_module(error)}: {first}"


def _line_of_module(error: Exception) -> str:
    """Return the innermost line that is neither torch's nor ours."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = PurePath(frame.filename)
        if "torch" not in path.parts and frame.filename != __file__:
            return f" at {path.name}:{frame.lineno} ({frame.line})"
    return ""
