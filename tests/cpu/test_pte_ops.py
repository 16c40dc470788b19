"""Files that ExecuTorch's exporter wrote for single ops, on the CPU."""

from tests.pte_ops.test_stock_ops import (  # noqa: F401  (tests)
    test_stock_files_give_torchs_answers,
)
