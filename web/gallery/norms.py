# %% [markdown]
# # Norms by layer
#
# The residual stream is what layers read from and add to. See how its length grows from layer to
# layer, in powers of ten, and which token is the longest: often the first one, on which attention
# rests.

# %%
from inpage import glass

text = "The quick brown fox jumps over the lazy dog."
found = await glass.norms(model, text)
plot.heat(
    np.log10(found["stream"]),
    columns=found["texts"],
    title="Length of the stream, as powers of ten",
    labels=("token", "layer"),
)

# %% [markdown]
# The largest single numbers, each with how many times as large as a usual one it is:

# %%
found["outliers"][:8]
