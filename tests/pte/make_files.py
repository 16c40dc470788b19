"""Makes tests/pte/files: small .pte files from ExecuTorch's own exporter, with torch's answers.

    make pte-files

Beside NAME.pte lie its data files (.ptd) and NAME.npz: calls on one loaded module, in order, each
with its method, inputs, outputs and what the inputs hold afterwards (see tests/packing.py).
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchProgramManager, to_edge_transform_and_lower
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  (torch.ops.llama)
from torch import nn
from torch.export import Dim, export
from torchao.quantization.granularity import PerGroup
from torchao.quantization.quant_api import IntxWeightOnlyConfig, quantize_

from tests.packing import pack
from tests.pte_exports.decoders import Decoder, EagerDecoder, write_random_checkpoint
from tests.pte_exports.decoders import export as export_decoder
from tests.pte_exports.exporter import quiet

FILES = Path(__file__).parent / "files"
FORWARD = "forward"

Tensors = tuple[torch.Tensor, ...]


@dataclass
class File:
    name: str
    program: bytes
    data: dict[str, bytes] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def call(self, inputs: Sequence[Any], outputs: Sequence[Any], method: str = FORWARD) -> None:
        self.calls.append({"method": method, "inputs": arrays(inputs), "outputs": arrays(outputs)})

    def write(self, folder: Path) -> None:
        (folder / f"{self.name}.pte").write_bytes(self.program)
        for name, content in self.data.items():
            (folder / name).write_bytes(content)
        if self.calls:
            (folder / f"{self.name}.npz").write_bytes(pack(self.calls))


def arrays(tensors: Sequence[Any]) -> list[Any]:
    return [x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x for x in tensors]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make_seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make().eval()


def lower(
    programs: Any, constants: dict[str, Any] | None = None, **options: Any
) -> ExecutorchProgramManager:
    partitioner = [VulkanPartitioner(options)]
    return to_edge_transform_and_lower(
        programs, partitioner=partitioner, constant_methods=constants
    ).to_executorch()


# --- one graph, static and dynamic -------------------------------------------------------------


class Rows(nn.Module):
    """x [S, 12] to [S, 8]: a linear, elementwise ops; and the last row, [8]."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 8)

    def forward(self, x: torch.Tensor) -> Tensors:
        y = self.linear(x)
        z = y * torch.sigmoid(y)
        return z, z[-1]


def static_linear() -> File:
    model = make_seeded(Rows)
    x = random(5, 12)
    made = File("static_linear", lower(export(model, (x,))).buffer)
    made.call([x], model(x))
    made.call([-x], model(-x))
    return made


def dynamic_rows() -> File:
    model = make_seeded(Rows)
    rows = {"x": {0: Dim("rows", min=1, max=16)}}
    made = File("dynamic_rows", lower(export(model, (random(16, 12),), dynamic_shapes=rows)).buffer)
    for number, count in enumerate((16, 3, 1, 7, 16)):
        x = random(count, 12, seed=number)
        made.call([x], model(x))
    return made


def q4_with_padded_rows() -> File:
    """K = 20: the exporter pads each row of weights to 24."""
    model = make_seeded(lambda: nn.Linear(20, 16))
    quantize_(model, IntxWeightOnlyConfig(torch.int4, PerGroup(20)))
    exact = nn.Linear(20, 16).double()
    exact.weight = nn.Parameter(model.weight.dequantize().double())
    exact.bias = nn.Parameter(model.bias.double())
    rows = ({0: Dim("rows", min=1, max=9)},)
    program = export(model, (random(9, 20),), dynamic_shapes=rows)
    made = File("q4_padded", lower(program).buffer)
    for number, count in enumerate((9, 1, 4, 9)):
        x = random(count, 20, seed=number)
        made.call([x], [exact(x.double()).float()])
    return made


class Integers(nn.Module):
    """The last input is used first; int64 comes in and goes out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)

    def forward(self, scale: torch.Tensor, ids: torch.Tensor, offset: torch.Tensor) -> Tensors:
        moved = offset + ids
        return self.embedding(ids) * scale, moved, moved * 3 - ids


def integers() -> File:
    model = make_seeded(Integers)
    ids, offset, scale = torch.tensor([3, 0, 9]), torch.tensor([-5, 70000, 2]), random(4)
    made = File("integers", lower(export(model, (scale, ids, offset))).buffer)
    made.call([scale, ids, offset], model(scale, ids, offset))
    made.call([scale, ids.flip(0), offset], model(scale, ids.flip(0), offset))
    return made


# --- what a method keeps or changes ------------------------------------------------------------


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, caches: Tensors, position: int
) -> torch.Tensor:
    """Call the op as the exporter knows it; `attend_in_torch` has what it does."""
    fixed = (None, 0.0, True, None)  # no mask, no dropout, causal, the usual scale
    out: torch.Tensor = torch.ops.llama.sdpa_with_kv_cache(
        q, k, v, *caches, position, q.shape[1], *fixed
    )
    return out


def attend_in_torch(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, caches: Tensors, position: int
) -> torch.Tensor:
    """Write k and v into the caches; then row s of q sees the cache up to position + s."""
    end = position + q.shape[1]
    for cache, new in zip(caches, (k, v), strict=True):
        cache[:, position:end] = new
    keys, values = (cache[:, :end].transpose(1, 2).double() for cache in caches)  # [1, Hkv, C, D]
    seen = torch.arange(end) <= torch.arange(position, end)[:, None]
    heads = nn.functional.scaled_dot_product_attention(
        q.transpose(1, 2).double(), keys, values, attn_mask=seen, enable_gqa=True
    )
    return heads.transpose(1, 2).float()


class CachesGiven(nn.Module):
    """q [1, S, 4, 8], k and v [1, S, 2, 8], caches [1, 12, 2, 8] that the caller keeps."""

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
    ) -> torch.Tensor:
        return attend(q, k, v, (k_cache, v_cache), 2)


class CachesInside(nn.Module):
    """Two caches of zeros, the same bytes; the position is the width of the last input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, 12, 2, 8))
        self.register_buffer("v_cache", torch.zeros(1, 12, 2, 8))

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, before: torch.Tensor
    ) -> torch.Tensor:
        return attend(q, k, v, (self.k_cache, self.v_cache), before.shape[1])


def attention_inputs(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q = random(1, rows, 4, 8, seed=10 * seed)
    k = random(1, rows, 2, 8, seed=10 * seed + 1)
    v = random(1, rows, 2, 8, seed=10 * seed + 2)
    return q, k, v


def caches_given() -> File:
    model = CachesGiven()
    rows = {1: Dim("rows", min=1, max=10)}
    caches = (random(1, 12, 2, 8, seed=1), random(1, 12, 2, 8, seed=2))
    inputs = (*attention_inputs(10, 0), *caches)
    shapes = (rows, rows, rows, None, None)
    made = File("caches_given", lower(export(model, inputs, dynamic_shapes=shapes)).buffer)
    for number, count in enumerate((10, 1, 4)):
        changed = tuple(cache.clone() for cache in caches)
        qkv = attention_inputs(count, number)
        out = attend_in_torch(*qkv, changed, 2)
        made.call([*qkv, *caches], [*changed, out])
        made.calls[-1]["afterwards"] = arrays([*qkv, *changed])
    return made


def caches_inside() -> File:
    model = CachesInside()
    rows, before = {1: Dim("rows", min=1, max=10)}, {1: Dim("before", min=1, max=11)}
    inputs = (*attention_inputs(10, 0), torch.zeros(1, 11))
    program = export(model, inputs, dynamic_shapes=(rows, rows, rows, before))
    made = File("caches_inside", lower(program).buffer)
    caches = (torch.zeros(1, 12, 2, 8), torch.zeros(1, 12, 2, 8))
    for number, (count, position) in enumerate(((1, 1), (6, 2), (1, 8), (3, 9), (2, 3))):
        qkv = attention_inputs(count, number)
        out = attend_in_torch(*qkv, caches, position)
        made.call([*qkv, torch.zeros(1, position)], [out])
    return made


# --- several methods, constant methods, data files ----------------------------------------------


class Halves(nn.Module):
    def __init__(self, shared: nn.Linear, factor: float) -> None:
        super().__init__()
        self.shared = shared
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shared(x) * self.factor


def methods() -> File:
    shared = make_seeded(lambda: nn.Linear(6, 6))
    assert isinstance(shared, nn.Linear)
    models = {FORWARD: Halves(shared, 1.0), "doubled": Halves(shared, 2.0)}
    x = random(2, 6)
    constants = {
        "get_max_seq_len": 32,
        "get_eos_ids": [7],
        "get_stop_ids": [2, 3],
        "get_scale": 0.5,
        "use_kv_cache": False,
        "get_name": "toy",
    }
    programs = {name: export(model, (x,)) for name, model in models.items()}
    made = File("methods", lower(programs, constants).buffer)
    for name, model in models.items():
        made.call([x], [model(x)], name)
    return made


def external_data() -> File:
    """Put all weights outside, in data files of at most 700 bytes."""
    model = make_seeded(lambda: nn.Sequential(nn.Linear(12, 12), nn.Sigmoid(), nn.Linear(12, 4)))
    x = random(3, 12)
    program = lower(export(model, (x,)), external_constants_max_data_bytes=700)
    made = File("external_data", program.buffer)
    with tempfile.TemporaryDirectory() as folder:
        program.write_tensor_data_to_file(folder)
        for number, path in enumerate(sorted(Path(folder).iterdir())):
            made.data[f"external_data_{number}.ptd"] = path.read_bytes()
    made.call([x], [model(x)])
    return made


# --- what is refused ----------------------------------------------------------------------------


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> Tensors:
        values, _ = torch.sort(x * 2)
        return torch.sigmoid(values), torch.cumsum(x, 0)


def partly_delegated() -> File:
    return File("partly_delegated", lower(export(Sorted(), (random(6),))).buffer)


def other_backend() -> File:
    program = export(make_seeded(lambda: nn.Linear(4, 4)), (random(2, 4),))
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return File("other_backend", lowered.to_executorch().buffer)


# --- decoders -----------------------------------------------------------------------------------


def decoder(name: str, kind: Decoder) -> File:
    """Prefill, decode, a chunk in the middle, a restart; tokens [1, S] and position [1]."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_random_checkpoint(folder, kind.family, seed=7)
        made = File(name, export_decoder(kind, folder).read_bytes())
        exact = EagerDecoder(kind, folder)
    context: list[int] = []
    for rows, position in ((9, 0), (1, 9), (1, 10), (5, 11), (30, 0), (1, 30), (2, 0)):
        tokens = [(7 * position + 11 * row + 3 * rows) % 96 for row in range(rows)]
        context = [*context[:position], *tokens]
        logits = torch.from_numpy(exact.logits(context)[position:])
        answer = logits[None] if kind.full_logits else logits[-1:]
        made.call([torch.tensor([tokens]), torch.tensor([position])], [answer])
    return made


def make_all() -> list[File]:
    with quiet(), torch.no_grad():
        return [
            static_linear(),
            dynamic_rows(),
            q4_with_padded_rows(),
            integers(),
            caches_given(),
            caches_inside(),
            methods(),
            external_data(),
            partly_delegated(),
            other_backend(),
            decoder("decoder_fp32", Decoder("llama", "fp32")),
            decoder("decoder_4w", Decoder("qwen3", "4w", True, quantised_embedding=True)),
        ]


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for file in make_all():
        file.write(FILES)
        print(f"{file.name}: {len(file.program):,} bytes, {len(file.calls)} calls")
