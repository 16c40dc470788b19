"""Short programs that show how to use the engine; tests/test_examples.py runs them."""
