"""The tokenizer of the toy model."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 320
END = "<|end|>"


def toy_tokenizer() -> Tokenizer:
    """Train a byte-level BPE on a few words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|user|>", "<|assistant|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 8, trainer)
    return tokenizer
