"""What names begin with where files are kept: in the browser's storage, natively in a cache."""

FILE = "file-"  # the SHA-256 of what it holds follows
BEGUN = "begun-"  # such a file, as far as it has come
MODEL = "model-"  # which files a model has
