"""The beginnings of the names of kept files, in the browser's storage and in a native cache."""

FILE = "file-"  # the SHA-256 of what it holds follows
BEGUN = "begun-"  # such a file, as far as it has come
MODEL = "model-"  # which files a model has
