"""Probed runs: every layer as torch has it, at any shape and position, and no trace afterwards."""

from pathlib import Path

import numpy as np
import pytest

from export.decoder import Decoder
from export.decoder_graph import DecoderGraph, export_decoder
from export.reference import hidden_states, last_logits, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError, InputError
from py_runtime.graph.probes import run_probed
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import SIZES
from tests.golden import Tolerance, compare
from tests.graph import engine_graphs
from tests.runners import NativeRunner, Runner, wait

pytestmark = pytest.mark.torch

NAMES = ["embedding", "layers.0", "layers.1", "norm"]
CLOSE = Tolerance(1e-3, 1e-5)
TOKENS = np.random.default_rng(0).integers(0, SIZES["vocab_size"], 80).tolist()
ENDS = (7, 8, 9, 41, 42, 80)  # of the chunks: a prompt, two tokens, another prompt, …


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceSource:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(folder, "smollm2")
    return HuggingFaceSource.open(folder, Quantisation("q4"))


@pytest.fixture(scope="module")
def graph(source: HuggingFaceSource) -> DecoderGraph:
    return export_decoder(source, source.decoder_config(96))


@pytest.fixture(scope="module")
def decoder(source: HuggingFaceSource, graph: DecoderGraph) -> Decoder:
    return reference_decoder(source, graph.config)


def test_every_layer_is_torchs_at_any_shape_and_position(
    source: HuggingFaceSource, graph: DecoderGraph, decoder: Decoder, runner: Runner
) -> None:
    check_every_layer(source, graph, decoder, runner, CLOSE)


def check_every_layer(
    source: HuggingFaceSource,
    graph: DecoderGraph,
    decoder: Decoder,
    runner: Runner,
    tolerance: Tolerance,
) -> None:
    """Compare each layer with torch's, at several shapes and positions of one graph."""
    starts = (0, *ENDS[:-1])
    constants = source.constants(graph.config, graph.constants)
    results = runner.run(
        "tests.model.verify_cases",
        "probe_calls",
        program=dump_program(graph.program),
        constants={name: give() for name, give in constants.items()},
        calls=[
            [np.array([TOKENS[start:end]]), np.array([start])]
            for start, end in zip(starts, ENDS, strict=True)
        ],
        names=NAMES[::-1],  # any order will do
    )
    for start, end, row in zip(starts, ENDS, results, strict=True):
        wanted = hidden_states(decoder, TOKENS[:end])
        assert list(wanted) == NAMES
        for name in NAMES:
            width = wanted[name].shape[0]
            tokens = 1 if name == "norm" else end - start
            assert row[name].size == tokens * width
            found = row[name].reshape(-1, width)[-1]
            compare(f"{name} after {end}", found, wanted[name], tolerance)
        logits = last_logits(decoder, TOKENS[:end])
        compare(f"logits, {end}", row["probed"][0], logits, tolerance)
        np.testing.assert_array_equal(row["probed"], row["plain"])
    np.testing.assert_array_equal(results[-1]["afterwards"], results[-1]["plain"])


def test_a_probed_run_costs_one_pass(native: NativeRunner) -> None:
    """There are as many dispatches as in a plain run, however many tensors are read on the way."""
    writer, _ = engine_graphs.decoder_like()
    graph = engine_graphs.load(native.device, writer)
    inputs = [engine_graphs.rows(5), np.array([0])]
    counters = native.device.counters
    counters.reset()
    wait(graph.run(inputs))
    plain = counters.dispatches
    made = [value_id for call in graph.program.ops for value_id in graph.program.writes(call)]
    tensors = [value_id for value_id in made if value_id in graph._builder.tensors]
    counters.reset()
    found = wait(run_probed(graph, inputs, tensors))
    assert counters.dispatches == plain
    assert counters.reads == len(found) == len(tensors) == 3
    graph.unload()


def test_intermediates_that_share_a_buffer_are_all_seen(native: NativeRunner) -> None:
    """The results of x + 1, + 1, … are five in two buffers; input and constant can be read, too."""
    writer = ProgramWriter()
    x = value = writer.input("x", (4, 8), F32, dynamic=(0,))
    one = writer.constant("one", np.ones(1, np.float32))
    sums = {f"sum {number}": writer.tensor((4, 8), F32, f"sum {number}") for number in range(1, 6)}
    for added in sums.values():
        writer.op("aten.add.Tensor", value, one, 1, added)
        value = added
    writer.output(value)
    graph = engine_graphs.load(native.device, writer)
    assert len({graph.buffer(added.id).label for added in sums.values()}) == 2
    for rows in (4, 1, 3):
        given = np.random.default_rng(rows).standard_normal((rows, 8), np.float32)
        found = wait(run_probed(graph, [given], [*sums, "x", one.id, x.id]))
        for number, name in enumerate(sums, start=1):
            np.testing.assert_allclose(found[name], given + number, rtol=1e-6)
        np.testing.assert_array_equal(found["x"], given)
        np.testing.assert_array_equal(found[x.id], given)
        np.testing.assert_array_equal(found[one.id], [1])
        np.testing.assert_allclose(engine_graphs.run(graph, given)[0], given + 5, rtol=1e-6)
    graph.unload()


def test_bad_probes_and_inputs_leave_the_graph_as_it_was(native: NativeRunner) -> None:
    writer, position = engine_graphs.decoder_like()
    unmade = writer.tensor((2, 2), F32, "unmade")
    doubles = [writer.tensor((2, 2), F32, "double") for _ in range(2)]
    graph = engine_graphs.load(native.device, writer)
    inputs = [engine_graphs.rows(5), np.array([0])]
    before = engine_graphs.run(graph, *inputs)[0]
    for probe, words in (
        ("nobody", "'nobody' names none"),
        ("double", rf"several \({doubles[0].id}, {doubles[1].id}\); give the id of one"),
        (unmade.id, "is not made by an op"),
        (position, "is not a tensor"),
        (10_000, "is not a tensor"),
    ):
        with pytest.raises(GraphError, match=words):
            wait(run_probed(graph, inputs, [probe]))
    with pytest.raises(InputError, match="above its maximum 48"):
        wait(run_probed(graph, [engine_graphs.rows(49), np.array([0])], ["x"]))
    np.testing.assert_array_equal(engine_graphs.run(graph, *inputs)[0], before)
    graph.unload()
    with pytest.raises(GraphError, match="was unloaded"):
        wait(run_probed(graph, inputs, ["x"]))


def test_names_reach_the_model_folder(toy_model: Path) -> None:
    from py_runtime.folder.on_disk import open_model_folder
    from py_runtime.graph.probes import tensors_by_name

    folder = open_model_folder(toy_model)
    hidden = [name.removeprefix("hidden.") for name in folder.goldens if name.startswith("hidden.")]
    assert hidden == NAMES
    assert all(len(tensors_by_name(folder.program)[name]) == 1 for name in NAMES)
