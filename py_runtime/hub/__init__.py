"""Models of the Hugging Face Hub: found, chosen, downloaded once and checked, then kept."""
