"""The names of files that a model folder has beside its weights."""

TOKENIZER, TOKENIZER_CONFIG, CONFIG = "tokenizer.json", "tokenizer_config.json", "config.json"
INDEX = "model.safetensors.index.json"  # of a checkpoint in several files
SAFETENSORS, VOCABULARY = "model.safetensors", "vocab.txt"  # of a checkpoint
MODEL_PTE = "model.pte"
PTE, PTD = ".pte", ".ptd"  # how the names of ExecuTorch's files end
GGUF = ".gguf"
