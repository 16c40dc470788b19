"""Views of what goes on inside a model; each gives plain data, which the page draws."""
