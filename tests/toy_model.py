"""A decoder small enough for a test: random weights, a byte-level tokenizer, a chat template."""

from dataclasses import dataclass
from pathlib import Path

NAME = "Toy"
SECOND = "Second"
CONTEXT = 512
SHARD_SIZE = 16 << 10  # several shards, so that a download can end between two
TOKENS = 8
CLEAR_MARGIN = 0.01  # below it torch's own next token is a coin's toss


@dataclass(frozen=True)
class Greedy:
    """A prompt, and the tokens that torch finds likeliest, one after the other."""

    prompt: list[int]
    tokens: list[int]


def greedy_of(folder: Path) -> Greedy:
    """Return the greedy continuation in the folder's goldens."""
    from safetensors.numpy import load_file

    goldens = load_file(folder / "goldens.safetensors")
    assert goldens["margins_0"][:TOKENS].min() > CLEAR_MARGIN
    return Greedy(goldens["prompt_0"].tolist(), goldens["continuation_0"][:TOKENS].tolist())


def write_toy_model(models: Path, name: str = NAME, family: str = "smollm2") -> Path:
    """Write the folder `models`/Toy, exported as people export theirs."""
    from export.command import main  # with torch, which not every test needs
    from tests.export.checkpoints import save_checkpoint

    checkpoint = models / ".checkpoint" / name
    save_checkpoint(checkpoint, family, sizes={"max_position_embeddings": CONTEXT})
    folder = models / name
    assert main([str(checkpoint), "-o", str(folder), "--shard-size", str(SHARD_SIZE)]) == 0
    return folder
