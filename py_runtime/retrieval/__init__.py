"""Retrieval: passages of long documents that a question asks for, by words and by meaning."""
