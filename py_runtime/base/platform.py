"""The platform this runs on; no other module asks."""

import sys

# In the page Python runs in Pyodide, with JavaScript beside it; elsewhere natively, over wgpu-py.
IN_PAGE = sys.platform == "emscripten"
ON_LINUX = sys.platform == "linux"
