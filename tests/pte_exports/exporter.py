"""ExecuTorch's own exporters, made quick and quiet."""

import functools
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from executorch.backends.vulkan.patterns import fusable_patterns

# Every lowering builds the graphs of all fusable patterns anew; here they are built once.
for entry in fusable_patterns.values():
    if entry.get_graphs_fn:
        entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)


@contextmanager
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
