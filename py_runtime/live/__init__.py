"""Live state of a graph: dims, SymInts and parameters as the current call has them."""
