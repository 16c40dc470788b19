# %% [markdown]
# # What is in this graph
#
# The loaded model is a chain of operations. Here they are counted, as the device runs them: the
# engine has fused most of them into a few kinds.

# %%
graph

# %%
from collections import Counter

counts = Counter(call.name.removeprefix("inpage.") for call in graph.program.ops)
plot.bars(dict(counts.most_common(12)), title="Operations of the model")

# %% [markdown]
# Where the memory goes: weights, the cache of keys and values, and what is in between.

# %%
memory = graph.memory
parts = ("constants", "state", "inputs", "intermediates", "uniforms")
plot.bars({part: getattr(memory, part) / 1e6 for part in parts}, title="Memory in MB")
