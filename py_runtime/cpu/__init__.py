"""The CPU as a device: kernels in WebAssembly that take what the shaders take."""
