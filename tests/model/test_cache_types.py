"""Models whose keys and values are kept in each type: near torch, and at home in every session."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from py_runtime.base import notices
from py_runtime.base.dtypes import CACHE_DTYPES, F32, Q4, Q8
from py_runtime.base.errors import GpuOutOfMemoryError, RequestError
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.gpu import Device
from py_runtime.graph.state_backup import StateBackup
from py_runtime.model import Model, load_model
from py_runtime.model.cache_type import CacheType, choose_cache_type
from py_runtime.model.requirements import CPU_MARGIN
from py_runtime.model.verify import verify
from py_runtime.passes.type_caches import caches_of
from py_runtime.program.writer import ProgramWriter
from tests.runners import CpuRunner, wait
from tests.toy_model import TOKENS, greedy_of

pytestmark = pytest.mark.torch


@asynccontextmanager
async def loaded(device: Device, folder: Path, kv: str | None) -> AsyncIterator[Model]:
    model = await Model.load(device, str(folder), kv=kv)
    try:
        yield model
    finally:
        model.unload()


async def greedy(model: Model, prompt: list[int]) -> list[int]:
    pieces = model.complete(prompt, temperature=0, max_tokens=TOKENS, ignore_eos=True)
    return [token async for piece in pieces for token in piece.token_ids]


@pytest.mark.parametrize("kv", CACHE_DTYPES)
def test_a_decoder_is_as_near_to_torch_as_its_caches_allow(
    cpu: CpuRunner, toy_model: Path, kv: str
) -> None:
    async def work() -> tuple[float, bool, int]:
        async with loaded(cpu.device, toy_model, kv) as model:
            assert model.caches == CacheType(kv, "asked for")
            report = await verify(model)
            wrong = max(layer.relative_rms for layer in report.layers)
            return wrong, report.ok, model.graph.memory.state

    wrong, is_ok, nbytes = wait(work())
    assert is_ok
    least, most = {"f32": (0, 1e-4), "f16": (1e-4, 1e-3), "q8": (1e-4, 5e-3), "q4": (1e-3, 0.3)}[kv]
    assert least <= wrong < most, "rounding shows, and no more than it"
    assert nbytes == CACHE_DTYPES[kv].bytes_of(wait(values_held(cpu.device, toy_model)))


async def values_held(device: Device, folder: Path) -> int:
    async with loaded(device, folder, "f32") as model:
        return model.graph.memory.state // F32.gpu_bytes


def test_blocks_of_8_bits_keep_greedy_tokens_in_a_session_that_goes_back_and_forth(
    cpu: CpuRunner, toy_model: Path
) -> None:
    wanted = greedy_of(toy_model)
    prompt = wanted.prompt
    other = [*prompt[: len(prompt) // 2], *prompt[:3]]

    async def work() -> list[list[int]]:
        async with loaded(cpu.device, toy_model, Q8.name) as model:
            found = [await greedy(model, each) for each in (prompt, other, prompt)]
            model.session.forget()
            return [*found, await greedy(model, other)]

    first, cut_back, again, fresh = wait(work())
    assert first == again == wanted.tokens
    assert cut_back == fresh


def test_states_are_saved_and_restored_with_their_blocks(cpu: CpuRunner, toy_model: Path) -> None:
    prompt = greedy_of(toy_model).prompt

    async def work() -> list[np.ndarray]:
        async with loaded(cpu.device, toy_model, Q4.name) as model:
            await greedy(model, prompt)
            graph = model.graph
            cache, rows = min(caches_of(graph.program)), len(prompt)
            backup = await StateBackup.create(graph, rows)
            found = [await graph.read(cache, rows)]
            await greedy(model, prompt[::-1])
            found.append(await graph.read(cache, rows))
            backup.put_back()
            found.append(await graph.read(cache, rows))
            await backup.release()
            return found

    before, between, after = wait(work())
    assert (before != between).any()
    np.testing.assert_array_equal(after, before)


# What is refused ---------------------------------------------------------------------------------


def attention(heads: int, width: int, is_read: bool = False) -> ProgramWriter:
    writer = ProgramWriter()
    dims = (1, 4, heads, width)
    q, k, v = (writer.input(name, dims, F32, dynamic=(1,)) for name in "qkv")
    caches = [writer.state(name, (1, 16, heads, width), F32) for name in ("kc", "vc")]
    out = writer.tensor(dims, F32)
    start = writer.symint_input("start_pos")
    rest = (start, 1, None, 0, True, None, out)
    writer.op("sdpa_with_kv_cache.default", q, k, v, *caches, *rest)
    writer.output(out, *caches[: int(is_read)])
    return writer


ROOM = dict.fromkeys(NEEDED_LIMITS, 1 << 30)
GPU: Any = SimpleNamespace(bytes_left=None, limits=ROOM)


def folder_of(writer: ProgramWriter, gpu_bytes: int = 0) -> Any:
    manifest = SimpleNamespace(name="M", gpu_bytes=gpu_bytes, size=gpu_bytes)
    return SimpleNamespace(program=writer.program(), manifest=manifest)


@pytest.mark.parametrize(
    ("writer", "kv", "fault"),
    [
        (attention(2, 8), "q8", "M cannot keep .* as q8: 2 heads of 8 values are no whole blocks"),
        (attention(2, 6), "f16", "M cannot keep .* as f16: 2 heads of 6 values are no multiples"),
        (attention(2, 16, is_read=True), "q4", "M cannot .* q4: something besides attention reads"),
        (attention(2, 16), "q5", "kv must be f32, f16, q8 or q4, got 'q5'"),
    ],
)
def test_caches_that_cannot_have_a_type_say_why(writer: ProgramWriter, kv: str, fault: str) -> None:
    with pytest.raises(RequestError, match=fault) as refused:
        choose_cache_type(folder_of(writer), GPU, F32.name, kv)
    assert refused.value.param == "kv"


def test_what_is_not_asked_for_is_as_usual() -> None:
    for usual in ("f32", "f16"):
        chosen = choose_cache_type(folder_of(attention(2, 16)), GPU, usual, None)
        assert (chosen, chosen.wanted) == (CacheType(usual, "usual"), None)
    asked = choose_cache_type(folder_of(attention(2, 6)), GPU, "f16", "f32")
    assert (asked, asked.wanted) == (CacheType("f32", "asked for"), "f32")
    plain = ProgramWriter()
    x = plain.input("x", (4,), F32)
    plain.output(x)
    assert choose_cache_type(folder_of(plain), GPU, F32.name, "q8") == CacheType("f32", "usual")


# Where memory is short ---------------------------------------------------------------------------

VALUES = 2 * 16 * 2 * 16  # of both caches
WEIGHTS = 1000


@pytest.mark.parametrize(
    ("missing", "chosen"),  # bytes that the usual type would take too many
    [(0, "f32"), (1, "f16"), (2 * VALUES, "f16"), (2 * VALUES + 1, "q8"), (3 * VALUES, "q4")],
)
def test_the_finest_type_that_a_processor_has_room_for_is_chosen_and_told(
    missing: int, chosen: str
) -> None:
    left = WEIGHTS + 4 * VALUES + CPU_MARGIN - missing
    device: Any = SimpleNamespace(bytes_left=left, limits={"max_buffer_size": 1 << 32})
    told: list[notices.Notice] = []
    end = notices.listen(told.append)
    try:
        folder = folder_of(attention(2, 16), WEIGHTS + 4 * VALUES)
        found = choose_cache_type(folder, device, F32.name, None)
    finally:
        end()
    assert (found.name, found.wanted) == (chosen, None)
    is_smaller = chosen != "f32"
    assert [each["kind"] for each in told] == ["memory"] * is_smaller
    if is_smaller:
        assert f"M keeps its context as {chosen} instead of f32" in told[0]["text"]


def test_a_processor_without_room_for_any_type_refuses() -> None:
    device: Any = SimpleNamespace(bytes_left=CPU_MARGIN, limits={"max_buffer_size": 1 << 32})
    folder = folder_of(attention(2, 16), WEIGHTS + 4 * VALUES)
    with pytest.raises(GpuOutOfMemoryError, match=r"M needs .* of memory"):
        choose_cache_type(folder, device, F32.name, None)


def test_a_cache_too_large_for_a_buffer_of_the_graphics_card_takes_less() -> None:
    limits = dict.fromkeys(NEEDED_LIMITS, VALUES)  # of one cache: two bytes each
    device: Any = SimpleNamespace(bytes_left=None, limits=limits)
    assert choose_cache_type(folder_of(attention(2, 16)), device, "f32", None).name == "f16"
    limits[NEEDED_LIMITS[0]] = VALUES - 1
    assert choose_cache_type(folder_of(attention(2, 16)), device, "f16", None).name == "q8"
    limits[NEEDED_LIMITS[0]] = 1  # the device itself refuses
    assert choose_cache_type(folder_of(attention(2, 16)), device, "f32", None).why == "usual"


@pytest.mark.parametrize("kv", ["half", 8, ["q8"]])
def test_a_type_that_is_not_known_is_refused_before_anything_is_opened(
    cpu: CpuRunner, kv: Any
) -> None:
    with pytest.raises(RequestError, match="kv must be"):
        wait(load_model(cpu.device, "nowhere", kv=kv))
