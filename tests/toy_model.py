"""A decoder small enough for a test: random weights, a byte-level tokenizer, a chat template."""

from pathlib import Path

NAME = "Toy"
CONTEXT = 512
SHARD_SIZE = 16 << 10  # several shards, so that a download can end between two


def write_toy_model(models: Path) -> Path:
    """The folder `models`/Toy, exported as people export theirs."""
    from export.command import main  # with torch, which not every test needs
    from tests.export.checkpoints import save_checkpoint

    checkpoint = models / ".checkpoint" / NAME
    save_checkpoint(checkpoint, "smollm2", sizes={"max_position_embeddings": CONTEXT})
    folder = models / NAME
    assert main([str(checkpoint), "-o", str(folder), "--shard-size", str(SHARD_SIZE)]) == 0
    return folder
