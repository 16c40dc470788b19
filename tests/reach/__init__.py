"""The engine outside its own page: other people's pages, and bare Pyodide."""
