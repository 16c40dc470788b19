"""Kernels outside the delegate that the host computes with numpy.

ExecuTorch's exporter leaves these beside a model that it delegates otherwise. Some come from the
decomposition of `where`, `masked_fill`, attention and norms, which happens after ops were chosen
for the delegate; some ops the delegate lacks for some dtypes and dims; and quantised models have
their inputs and outputs there.
"""

from py_runtime.pte.host_by_places import BY_PLACES
from py_runtime.pte.host_elementwise import ELEMENTWISE
from py_runtime.pte.host_over_dims import OVER_DIMS

HOST_KERNELS = {**ELEMENTWISE, **OVER_DIMS, **BY_PLACES}
