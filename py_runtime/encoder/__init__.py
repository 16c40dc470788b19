"""Text encoders: their sizes, tensors and programs, and how models ask to be used."""
