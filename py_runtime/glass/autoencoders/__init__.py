"""Sparse autoencoders as files have them, read without trust: features of activations."""
