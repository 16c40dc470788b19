"""Low-rank adapters (LoRA) as files have them: PEFT's and GGUF's, read without trust."""
