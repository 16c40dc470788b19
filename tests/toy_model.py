"""A decoder small enough for a test: random weights, a byte-level tokenizer, a chat template."""

from pathlib import Path

from export.command import main
from tests.export.checkpoints import save_checkpoint

NAME = "Toy"
CONTEXT = 512
SHARD_SIZE = 16 << 10  # several shards, so that a download can end between two


def write_toy_model(models: Path) -> Path:
    """The folder `models`/Toy, exported as people export theirs."""
    checkpoint = models / ".checkpoint" / NAME
    save_checkpoint(checkpoint, "smollm2", sizes={"max_position_embeddings": CONTEXT})
    folder = models / NAME
    assert main([str(checkpoint), "-o", str(folder), "--shard-size", str(SHARD_SIZE)]) == 0
    return folder
