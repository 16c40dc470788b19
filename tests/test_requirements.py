"""Each defect of the engine this one rebuilds (S1-S33, U1-U16) is a requirement, with its test.

The names are those of the reviews and reports in which the defects were found. A requirement that
is met by the shape of the code names the test that would notice if it were not.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import InputError
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter
from tests.golden import ELEMENTWISE, compare
from tests.runners import NativeRunner, wait
from tools.files import ROOT

pytestmark = pytest.mark.torch

ENGINE = "tests/graph/test_graph.py"
LIVE = "tests/live/test_values.py"
SYMINTS = "tests/ops/test_symints.py"
HOSTILE = "tests/graph/test_hostile_graphs.py"
OPS = "tests/ops/test_ops.py"
SUITE = "tests/dynamic_shape/test_suite.py"
ATTENTION = "tests/ops/test_attention_errors.py"
GPU = "tests/gpu/test_gpu.py"
HERE = "tests/test_requirements.py"

REQUIREMENTS = {
    "S1 nothing raw escapes a run": f"{ENGINE}::test_only_our_errors_escape",
    "S2 element width from the dtype": f"{LIVE}::test_element_width_comes_from_the_dtype",
    "S3 select_as_symint reads [0, …, index, …, 0]": (
        f"{SYMINTS}::test_select_as_symint_reads_the_element_at_index_and_zeros"
    ),
    "S4 a first call at the build-time state is right": (
        f"{ENGINE}::test_every_op_of_a_chain_is_resized_once"
    ),
    "S5 SymInt accessors fail loudly": f"{SYMINTS}::test_accessors_refuse_what_is_no_symint",
    "S6 a SymInt's source is found at load": (f"{SYMINTS}::test_select_as_symint_wants_an_input"),
    "S7 one numel helper": f"{HERE}::test_s7_products_of_dims_come_from_one_helper",
    "S8 one named entry resizes inputs and outputs": (
        f"{ENGINE}::test_bad_input_is_named_and_leaves_the_graph_as_it_was"
    ),
    "S9 one normalise_dim, checked": "tests/base/test_shapes.py::test_normalise_dim",
    "S10 a zero dim is refused": (
        f"{ENGINE}::test_bad_input_is_named_and_leaves_the_graph_as_it_was"
    ),
    "S11 no dim lists per token": f"{ENGINE}::test_decode_steps_touch_only_what_reads_the_position",
    "S12 nothing stays dirty": f"{ENGINE}::test_every_op_of_a_chain_is_resized_once",
    "S13 resizing really happens": f"{ENGINE}::test_every_op_of_a_chain_is_resized_once",
    "S14 build and resize are one function": (f"{ENGINE}::test_build_and_resize_agree_to_the_byte"),
    "S15 state belongs to one op of one graph": (
        f"{HERE}::test_s15_graphs_of_one_program_share_no_state"
    ),
    "S16 one grid helper": "tests/live/test_launch.py::test_fold_covers_every_workgroup",
    "S17 capacity is guarded": f"{ATTENTION}::test_a_position_beyond_the_context",
    "S18 two triggers, one resize": f"{ENGINE}::test_two_triggers_resize_an_op_once",
    "S19 live rank is checked": f"{ENGINE}::test_bad_input_is_named_and_leaves_the_graph_as_it_was",
    "S20 one text for one condition": f"{HERE}::test_s20_the_same_condition_has_the_same_text",
    "S21 all of attention follows S and position": f"{SUITE}::test_equals_torch",
    "S22 zero rows and too many rows differ": (
        f"{ENGINE}::test_bad_input_is_named_and_leaves_the_graph_as_it_was"
    ),
    "S23 rope follows q and k": f"{ATTENTION}::test_tokens_of_a_rotary_differ",
    "S24 freqs cover the live S": f"{ATTENTION}::test_rotary_tables_are_too_short",
    "S25 one helper sets parameters and grid": (
        f"{ENGINE}::test_build_and_resize_agree_to_the_byte"
    ),
    "S26 uniform creation is checked": f"{GPU}::test_faults_are_named",
    "S27 uniforms belong to the graph": f"{ENGINE}::test_unloading_gives_everything_back",
    "S28 one lowering helper": f"{SUITE}::test_equals_torch",
    "S29 outputs are chosen by index": (
        f"{ENGINE}::test_only_wanted_outputs_are_computed_and_read"
    ),
    "S30 named tolerances": f"{SUITE}::test_equals_torch",
    "S31 a size mismatch is a failure": f"{HERE}::test_s31_a_size_mismatch_fails_by_name",
    "S32 every case is listed, none skipped": f"{SUITE}::test_every_letter_is_there",
    "S33 one graph, growing back included": f"{SUITE}::test_c_buffers_keep_their_identity",
    "U1 no stale S with a new position": f"{ENGINE}::test_stale_s_never_meets_a_new_position",
    "U2 sym_size of an intermediate is fresh": (
        f"{ENGINE}::test_sym_size_of_an_intermediate_is_this_calls"
    ),
    "U3 tensors feed SymInts in the same call": (
        f"{ENGINE}::test_sym_size_of_an_intermediate_is_this_calls"
    ),
    "U4 views follow their size list": f"{HERE}::test_u4_a_view_follows_its_size_list",
    "U5 what cannot resize is refused": (
        f"{ENGINE}::test_an_op_that_cannot_resize_is_refused_on_a_dynamic_graph"
    ),
    "U6 routes follow live rows, sym_size or not": (
        "tests/ops/test_linear_graphs.py::test_only_the_route_for_the_live_rows_runs"
    ),
    "U7 K is padded as stored": f"{OPS}::test_op_equals_torch",
    "U8 update_cache at a live position": f"{OPS}::test_op_equals_torch",
    "U9 grids fold in every op": f"{OPS}::test_op_equals_torch_on_a_folded_grid",
    "U10 batches, any head width": f"{OPS}::test_op_equals_torch",
    "U11 unknown kinds are refused, all known ones read": (
        f"{HOSTILE}::test_every_kind_survives_json"
    ),
    "U12 a duplicate registration is an error": f"{ENGINE}::test_a_name_is_registered_once",
    "U13 SymInts as inputs": f"{SYMINTS}::test_symint_arithmetic",
    "U14 unknown ops are refused at load, all at once": f"{HOSTILE}::test_each_lie_is_named",
    "U15 error scopes and device loss": f"{GPU}::test_a_destroyed_device_says_so",
    "U16 views cost nothing and hide nothing": f"{ENGINE}::test_views_cost_nothing",
}


def test_every_requirement_has_a_test_that_exists() -> None:
    numbers = [name.split()[0] for name in REQUIREMENTS]
    assert numbers == [*(f"S{n}" for n in range(1, 34)), *(f"U{n}" for n in range(1, 17))]
    for requirement, test in REQUIREMENTS.items():
        file, _, function = test.partition("::")
        found = re.search(rf"^def {function}\b", (ROOT / file).read_text(), re.MULTILINE)
        assert found, f"{requirement}: {test} does not exist"


def test_s7_products_of_dims_come_from_one_helper() -> None:
    others = [
        path.name
        for path in Path(ROOT / "py_runtime").rglob("*.py")
        if path.name != "shapes.py" and re.search(r"\bprod\(", path.read_text())
    ]
    assert others == []


def doubling_graph(max_rows: int = 8, max_out: int = 8) -> ProgramWriter:
    writer = ProgramWriter()
    x = writer.input("x", (max_rows, 4), F32, dynamic=(0,))
    out = writer.tensor((max_out, 4), F32, "out")
    writer.op("aten.add.Tensor", x, x, 1, out)
    writer.output(out)
    return writer


def test_s15_graphs_of_one_program_share_no_state(native: NativeRunner) -> None:
    program = doubling_graph().program()

    async def interleaved() -> list[int]:
        first, second = [await Graph.load(native.device, program) for _ in range(2)]
        lengths = []
        for graph, rows in ((first, 3), (second, 5), (first, 3), (second, 8), (first, 1)):
            (out,) = await graph.run([np.ones((rows, 4), np.float32)])
            assert (out == 2).all()
            lengths.append(len(out))
        first.unload()
        second.unload()
        return lengths

    assert wait(interleaved()) == [3, 5, 3, 8, 1]


def test_s20_the_same_condition_has_the_same_text(native: NativeRunner) -> None:
    """A tensor above its maximum reads alike whether a caller or an op made it so."""
    writer = ProgramWriter()
    x = writer.input("x", (8, 4), F32, dynamic=(0,))
    out = writer.tensor((8, 4), F32, "out")
    writer.symint("unused")  # without one, the largest shapes would be checked at load
    writer.op("aten.cat.default", [x, x], 0, out)
    writer.output(out)

    async def texts() -> list[str]:
        graph = await Graph.load(native.device, writer.program())
        found = []
        for rows in (9, 6):
            with pytest.raises(InputError) as caught:
                await graph.run([np.zeros((rows, 4), np.float32)])
            found.append(str(caught.value))
        graph.unload()
        return found

    by_caller, by_op = wait(texts())
    shape = "{}: dim 0 is {}, above its maximum 8 (dims [{}, 4], at most [8, 4])"
    assert by_caller == shape.format("value 0 'x'", 9, 9)
    assert by_op == shape.format("value 1 'out'", 12, 12)


def test_s31_a_size_mismatch_fails_by_name() -> None:
    with pytest.raises(AssertionError, match=r"output 0: shape \(3,\), torch has \(4,\)"):
        compare("output 0", np.zeros(3, np.float32), np.zeros(4), ELEMENTWISE)


def test_u4_a_view_follows_its_size_list(native: NativeRunner) -> None:
    """Max [4, 8, 16] with dim 1 live at 4 is [4, 4, 16], and not the [2, 8, 16] of a guess."""
    writer = ProgramWriter()
    x = writer.input("x", (4, 8, 16), F32, dynamic=(1,))
    length, out = writer.symint("length"), writer.tensor((4, 8, 16), F32)
    writer.op("sym_size.int", x, 1, length)
    writer.op("aten.view_copy.default", x, [4, length, 16], out)
    writer.output(out)

    async def shape() -> tuple[int, ...]:
        graph = await Graph.load(native.device, writer.program())
        (viewed,) = await graph.run([np.zeros((4, 4, 16), np.float32)])
        graph.unload()
        return viewed.shape

    assert wait(shape()) == (4, 4, 16)
