# %% [markdown]
# # One kernel, any length
#
# A graph of a single operation, made here and run on the device with three lengths: the same kernel
# serves all of them. It agrees with numpy.

# %%
from py_runtime.base.dtypes import F32
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter

writer = ProgramWriter()
weight = np.linspace(0.5, 1.5, 576, dtype=np.float32)
x = writer.input("x", (64, 576), F32, dynamic=[0])
out = writer.tensor((64, 576), F32)
writer.op("et_vk.rms_norm.default", x, writer.constant("weight", weight), 1e-5, out)
writer.output(out)
small = await Graph.load(device, writer.program(), writer.constants)

# %%
differences = []
for rows in (64, 7, 1):
    data = np.random.default_rng(rows).standard_normal((rows, 576), np.float32)
    (computed,) = await small.run([data])
    in_numpy = data / np.sqrt((data * data).mean(-1, keepdims=True) + 1e-5) * weight
    differences.append({"rows": rows, "largest difference": float(abs(computed - in_numpy).max())})
small.unload()
differences
