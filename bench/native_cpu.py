"""The CPU device natively: beside llama.cpp, and beside a loop that only reads.

python -m bench.native_cpu [--threads 2] [--rounds 5] [--shape llama-3.2-1b-q4_k_m]

Needs what `make test-llama-cpp` installs. Both engines read the default model's GGUF file and take
turns; then a model of random weights decodes, and a plain loop of vectors reads as much memory with
as many threads.
"""

import argparse
import asyncio
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

import wasmtime

import inpage
from bench.fill import TEMPLATE, fill
from bench.synthetic import SHAPES, write_template
from export.default_model import default_gguf
from py_runtime.cpu.device import PAGE
from py_runtime.cpu.native import SharedMemory
from py_runtime.model import writer
from tools.cpu_kernels import COMPILER, FLAGS
from tools.files import ROOT

PROMPT, TOKENS = 128, 64
LLAMA_CPP = ROOT / "build" / "llama_cpp"
READ_BYTES = 1 << 29  # far more than any cache holds
READS = 6


async def measure_answer(model: inpage.Model, number: int) -> tuple[float, float]:
    """Return the tokens per second of a prompt, and of those that follow it."""
    prompt = [100 + (7 * at + number) % 1000 for at in range(PROMPT)]
    model.session.forget()
    usage = None
    async for piece in model.complete(
        prompt, max_tokens=TOKENS + 1, temperature=0, ignore_eos=True
    ):
        usage = piece.usage or usage
    assert usage is not None
    assert usage.prefill_tokens_per_s
    assert usage.decode_tokens_per_s
    return usage.prefill_tokens_per_s, usage.decode_tokens_per_s


async def compare_with_llama_cpp(threads: int, rounds: int) -> None:
    """Print the medians of both engines, which take turns."""
    gguf = str(default_gguf())
    script = str(ROOT / "bench" / "llama_cpp.mjs")
    command = ["node", script, gguf, str(threads), str(PROMPT), str(TOKENS)]
    model = writer(await inpage.load(gguf, device="cpu", threads=threads))
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    with subprocess.Popen(
        command, cwd=LLAMA_CPP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        peer.stdout.readline()
        for number in range(rounds + 1):
            ours.append(await measure_answer(model, number))
            theirs.append(ask(peer.stdin, peer.stdout))
        peer.stdin.close()
    model.unload()
    for at, what in enumerate(("prefill", "decode")):
        mine, other = (statistics.median(e[at] for e in each[1:]) for each in (ours, theirs))
        print(f"{what}: inpage {mine:.1f}, llama.cpp {other:.1f} tok/s: {mine / other:.2f}x")


def ask(requests: IO[str], answers: IO[str]) -> tuple[float, float]:
    """Ask llama.cpp's process for a round."""
    requests.write("\n")
    requests.flush()
    found = json.loads(answers.readline())
    return found["prefill"], found["decode"]


async def compare_with_reading(shape: str, threads: int, rounds: int) -> None:
    """Print how fast decoding reads weights, and how fast a plain loop reads memory."""
    with tempfile.TemporaryDirectory() as folder:
        template, where = Path(folder) / "template", Path(folder) / shape
        write_template(shape, template)
        fill(template, where)
        weights = json.loads((template / TEMPLATE).read_text())["bytes_read_per_token"]
        model = writer(await inpage.load(str(where), device="cpu", threads=threads))
        speeds = [(await measure_answer(model, number))[1] for number in range(rounds)]
        model.unload()
    decode = statistics.median(speeds[1:])
    rate = decode * weights / 1e9
    plain = read_rate(threads, Path(tempfile.mkdtemp()))
    print(
        f"{shape}: decode {decode:.2f} tok/s, {rate:.2f} GB/s of weights; a plain loop reads "
        f"{plain:.2f} GB/s: {rate / plain:.2f}x"
    )


def read_rate(threads: int, folder: Path) -> float:
    """Return the GB/s of the plain loop, the best of several."""
    module = folder / "read_loop.wasm"
    source = str(ROOT / "bench" / "read_loop.c")
    subprocess.run([*COMPILER, *FLAGS, source, "-o", str(module)], check=True)
    config = wasmtime.Config()
    config.wasm_threads = True
    config.wasm_simd = True
    config.shared_memory = True
    engine = wasmtime.Engine(config)
    compiled = wasmtime.Module(engine, module.read_bytes())
    pages = READ_BYTES // PAGE + 16
    kind = wasmtime.MemoryType(wasmtime.Limits(pages, 65535), shared=True)
    memory = SharedMemory(engine, kind)

    def instantiate() -> "tuple[wasmtime.Store, wasmtime.Func]":
        store = wasmtime.Store(engine)
        linker = wasmtime.Linker(engine)
        linker.define(store, "env", "memory", memory)
        read = linker.instantiate(store, compiled).exports(store)["read"]
        assert isinstance(read, wasmtime.Func)
        return store, read

    # Pages that nobody wrote would all be the same page of zeros, which the caches hold.
    ctypes.memset(memory.data_ptr(), 1, memory.data_len())
    share = READ_BYTES // threads
    instances = [instantiate() for _ in range(threads)]
    best = 0.0
    for _ in range(READS):
        workers = [
            threading.Thread(target=read, args=(store, 4 * PAGE + at * share, share))
            for at, (store, read) in enumerate(instances)
        ]
        started = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, READ_BYTES / (time.perf_counter() - started) / 1e9)
    return best


def main(arguments: list[str]) -> None:
    """Measure and print both comparisons."""
    parser = argparse.ArgumentParser(prog="python -m bench.native_cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="llama-3.2-1b-q4_k_m")
    options = parser.parse_args(arguments)
    asyncio.run(compare_with_llama_cpp(options.threads, options.rounds))
    asyncio.run(compare_with_reading(options.shape, options.threads, options.rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
