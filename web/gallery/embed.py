# %% [markdown]
# # Embed my lines
#
# The model turns each line into a list of numbers; lines that mean something similar get similar
# numbers. The two directions in which yours differ most make a map. Put in lines of your own.

# %%
lines = """The cat sleeps on the sofa.
A kitten naps on the couch.
Dogs like to run in the park.
Interest rates rise again.
The bank raises its rates.
Rain is expected tomorrow.
Tomorrow will be wet.""".splitlines()

vectors = await model.embed(lines)
vectors

# %%
centred = vectors - vectors.mean(0)
_, _, directions = np.linalg.svd(centred, full_matrices=False)
x, y = directions[:2] @ centred.T
plot.scatter(x, y, [line[:24] for line in lines], title="Your lines by meaning")

# %%
plot.heat(vectors @ vectors.T, rows=lines, columns=range(len(lines)), title="How alike are they?")
