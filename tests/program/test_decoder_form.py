"""A decoder that gives all its logits computes the last row alone, as far back as rows go."""

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I32
from py_runtime.base.model_errors import ModelError
from py_runtime.graph import Graph
from py_runtime.program import Program, TensorValue
from py_runtime.program.decoder_form import as_decoder, decoder_sizes
from py_runtime.program.writer import ProgramWriter, Ref
from tests.runners import NativeRunner, wait

LONGEST, WIDTH, VOCABULARY = 9, 8, 16


def decoder(*, flat: bool, dynamic: bool = True) -> ProgramWriter:
    """Embedding, norm and head; `flat` heads take [S, W], as ExecuTorch writes float ones."""
    rng = np.random.default_rng(3)
    writer = ProgramWriter("toy")
    position = writer.input("position", (1,), I32)
    tokens = writer.input("tokens", (1, LONGEST), I32, dynamic=(1,) if dynamic else ())
    table = writer.constant("table", rng.standard_normal((VOCABULARY, WIDTH), np.float32))
    x = writer.tensor((1, LONGEST, WIDTH), F32)
    writer.op("aten.embedding.default", table, tokens, -1, False, False, x)
    start = writer.symint()
    writer.op("et_vk.select_as_symint.default", position, 0, 0, start)
    normed = writer.tensor((1, LONGEST, WIDTH), F32)
    weight = writer.constant("norm", rng.standard_normal(WIDTH, np.float32))
    writer.op("et_vk.rms_norm.default", x, weight, 1e-5, normed)
    head = writer.constant("head", rng.standard_normal((VOCABULARY, WIDTH), np.float32))
    logits = writer.tensor((1, LONGEST, VOCABULARY), F32)
    if flat:
        rows, out = writer.tensor((LONGEST, WIDTH), F32), writer.tensor((LONGEST, VOCABULARY), F32)
        writer.op("aten.view_copy.default", normed, [-1, WIDTH], rows)
        writer.op("aten.linear.default", rows, head, None, out)
        writer.op("aten.view_copy.default", out, [1, -1, VOCABULARY], logits)
    else:
        writer.op("aten.linear.default", normed, head, None, logits)
    writer.output(logits)
    return writer


@pytest.mark.parametrize("flat", [False, True])
def test_the_last_row_is_the_same(flat: bool, native: NativeRunner) -> None:
    writer = decoder(flat=flat)
    program = as_decoder(writer.program())
    assert decoder_sizes(program) == (LONGEST, VOCABULARY)

    async def both(length: int) -> list[np.ndarray]:
        whole = await Graph.load(native.device, writer.program(), writer.constants)
        last = await Graph.load(native.device, program, writer.constants)
        tokens, position = np.arange(length)[None] % VOCABULARY, np.array([0])
        (logits,) = await whole.run([position, tokens])
        (row,) = await last.run([tokens, position])
        whole.unload()
        last.unload()
        return [logits[:, -1], row]

    for length in (LONGEST, 4, 1):
        expected, row = wait(both(length))
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flat", [False, True])
def test_norm_and_head_see_one_row(flat: bool) -> None:
    program = as_decoder(decoder(flat=flat).program())
    rows = {call.name: dims_of(program, call.args[-1]) for call in program.ops}
    assert rows["aten.linear.default"] == (1, VOCABULARY)
    assert rows["et_vk.rms_norm.default"] == (1, WIDTH)
    assert rows["aten.embedding.default"] == (1, LONGEST, WIDTH)
    assert "aten.view_copy.default" not in rows


def test_what_is_used_elsewhere_keeps_all_its_rows() -> None:
    """Two heads read the norm; one of them is the output."""
    writer = decoder(flat=False)
    norm = next(call for call in writer.program().ops if "rms_norm" in call.name)
    writer.op("aten.sigmoid.default", Ref(norm.args[-1]), writer.tensor((1, LONGEST, WIDTH), F32))
    program = as_decoder(writer.program())
    rows = {call.name: dims_of(program, call.args[-1]) for call in program.ops}
    assert rows["et_vk.rms_norm.default"] == (1, LONGEST, WIDTH)
    assert rows["aten.linear.default"] == (1, VOCABULARY)


def test_what_takes_other_things_than_integers_stays_as_it_is() -> None:
    writer = ProgramWriter("floats")
    x, y = writer.input("x", (1,), F32), writer.input("y", (1, 4), F32)
    out = writer.tensor((1, 4), F32)
    writer.op("aten.add.Tensor", y, x, 1, out)
    writer.output(out)
    program = writer.program()
    assert as_decoder(program) is program


def test_one_length_alone_is_no_decoder() -> None:
    program = as_decoder(decoder(flat=False, dynamic=False).program())
    with pytest.raises(ModelError, match="takes exactly 9 tokens at a time"):
        decoder_sizes(program)


def dims_of(program: Program, value_id: int) -> tuple[int, ...]:
    value = program.values[value_id]
    return value.dims if isinstance(value, TensorValue) else ()
