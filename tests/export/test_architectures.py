"""Every architecture: a random checkpoint through our decoder and engine, as in transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from export.decoder_graph import export_decoder
from export.reference import hidden_states, last_logits, perplexity, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.graph import Graph
from py_runtime.graph.probes import run_probed
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import FAMILIES, SIZES
from tests.golden import Tolerance, compare
from tests.runners import NativeRunner, wait

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

EXACT_WEIGHTS = Tolerance(1e-3, 2e-5)  # rounding, after the nine layers of Gemma 4
QUANTISATIONS = ("q4gsw", "q4", "q8")


def tokens_of(length: int) -> list[int]:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(0, SIZES["vocab_size"], (length,), generator=generator).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_decoder_and_engine_equal_transformers(
    family: str, tmp_path: Path, native: NativeRunner
) -> None:
    model = save_checkpoint(tmp_path, family)
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    graph = export_decoder(source, source.decoder_config(None))
    decoder = reference_decoder(source, graph.config)
    constants = {
        name: give() for name, give in source.constants(graph.config, graph.constants).items()
    }

    loaded = wait(Graph.load(native.device, graph.program, constants))

    async def engine(chunks: list[tuple[list[int], int]]) -> np.ndarray:
        for tokens, start in chunks:
            (logits,) = await loaded.run([np.array([tokens]), np.array([start])])
        return logits[0]

    # As transformers gives them; the last layer's come normalised.
    layers = [f"layers.{number}" for number in range(graph.config.layers - 1)]
    names = ["embedding", *layers, "norm"]
    residual = source.values.get("residual_multiplier", 1.0)  # what is held is divided by it

    async def engine_layers(tokens: list[int]) -> dict[str, np.ndarray]:
        found = await run_probed(loaded, [np.array([tokens]), np.array([0])], names)
        return {str(name): array[..., -1, :].reshape(-1) for name, array in found.items()}

    with torch.no_grad():
        states = model(torch.tensor([tokens_of(7)]), output_hidden_states=True).hidden_states
    torchs, engines = hidden_states(decoder, tokens_of(7)), wait(engine_layers(tokens_of(7)))
    for name, state in zip(names, states, strict=True):
        wanted = state[0, -1].double().numpy() / (1 if name == "norm" else residual)
        compare(f"torch, {name}", torchs[name], wanted, EXACT_WEIGHTS)
        compare(f"engine, {name}", engines[name], wanted, EXACT_WEIGHTS)
    for length in (1, 7, 100):
        tokens = tokens_of(length)
        with torch.no_grad():
            wanted = model(torch.tensor([tokens])).logits[0, -1].double().numpy()
        compare(f"torch, {length}", last_logits(decoder, tokens), wanted, EXACT_WEIGHTS)
        split = max(1, length - 3)
        most = graph.config.max_chunk
        chunks = [(tokens[:split][at : at + most], at) for at in range(0, split, most)]
        chunks += [([t], split + i) for i, t in enumerate(tokens[split:])]
        compare(f"engine, {length}", wait(engine(chunks)), wanted, EXACT_WEIGHTS)
    loaded.unload()


@pytest.mark.parametrize("quantisation", QUANTISATIONS)
@pytest.mark.parametrize("family", ["qwen2.5", "llama 3"])
def test_the_engine_computes_what_the_stored_weights_say(
    family: str, quantisation: str, tmp_path: Path, native: NativeRunner
) -> None:
    save_checkpoint(tmp_path, family)
    source = HuggingFaceSource.open(tmp_path, Quantisation(quantisation))
    graph = export_decoder(source, source.decoder_config(64))
    decoder = reference_decoder(source, graph.config)
    constants = {
        name: give() for name, give in source.constants(graph.config, graph.constants).items()
    }

    async def engine(tokens: list[int]) -> np.ndarray:
        loaded = await Graph.load(native.device, graph.program, constants)
        (logits,) = await loaded.run([np.array([tokens]), np.array([0])])
        loaded.unload()
        return logits[0]

    tokens = tokens_of(40)
    wanted = last_logits(decoder, tokens).astype(np.float64)
    compare(quantisation, wait(engine(tokens)), wanted, EXACT_WEIGHTS)


def test_more_bits_stay_closer_to_the_source(tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path, "smollm2")
    tokens = tokens_of(60)
    with torch.no_grad():
        wanted = model(torch.tensor([tokens])).logits[0, -1].double().numpy()
    errors = {}
    for name in ("none", "q8", "q4", "q4gsw"):
        source = HuggingFaceSource.open(tmp_path, Quantisation(name))
        decoder = reference_decoder(source, source.decoder_config(None))
        got = last_logits(decoder, tokens)
        errors[name] = float(np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean()))
        assert perplexity(decoder, tokens) > 1
    assert errors["none"] < 1e-5 < errors["q8"] < errors["q4"] < 0.5
    assert errors["q8"] < errors["q4gsw"] < 0.5
