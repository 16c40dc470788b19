"""All kernels for a browser's compiler: each joined with each file that plugs into it.

What they compute is tried elsewhere, where each kernel and each file runs.
"""

from tests.gpu.test_kernel_sources import KERNELS, ways_with_new_files

AT_ONCE = 100  # kernels in a message
# The body of an async function of `given`: [label, source] each. Returns what is wrong with them.
COMPILE = """const adapter = await navigator.gpu.requestAdapter();
const device = await adapter.requestDevice({requiredFeatures: [...adapter.features]});
const faults = await Promise.all(given.map(async ([label, code]) => {
    const {messages} = await device.createShaderModule({label, code}).getCompilationInfo();
    return messages.filter(({type}) => type === "error").map(({message}) => label + message);
}));
device.destroy();
return faults.flat();"""
BROKEN = [("broken", "fn")]


def batches(*features: str) -> list[list[tuple[str, str]]]:
    """Return all kernels that need none of WGSL's features but these: their labels and sources."""
    kernels = [
        (way.label, way.source)
        for name in KERNELS
        for way in ways_with_new_files(name)
        if {line.split()[1] for line in way.source.splitlines() if line.startswith("enable ")}
        <= {f"{feature};" for feature in features}
    ]
    return [kernels[first : first + AT_ONCE] for first in range(0, len(kernels), AT_ONCE)]
