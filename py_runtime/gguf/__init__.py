"""GGUF files: the container, its tensor types, and the tokenizer and configuration inside."""
