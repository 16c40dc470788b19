"""The glass engine: see, measure, change and steer a model while it runs.

Names are those of TransformerLens (`blocks.7.hook_resid_post`, `run_with_cache`); docs/glass.md has
all of them.
"""
