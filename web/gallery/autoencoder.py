# %% [markdown]
# # Train a small autoencoder on this layer
#
# A layer holds more ideas than it has numbers, one upon the other. A sparse autoencoder learns
# directions of which a few at a time rebuild what is there. The model writes its own page of text
# to learn from; put in other beginnings, and more of them, for other features.

# %%
from inpage import glass

layers = sum(name.endswith("hook_resid_post") for name in glass.hooks(model))
hook = f"blocks.{layers * 2 // 3}.hook_resid_post"

starts = """The capital of France is the city of
The recipe begins with butter, flour and
def add(a, b):
Once upon a time, a king and his daughter
In 1969, the first people on the Moon
The doctor asked the patient how she
Water boils at a temperature of
She plays the piano, the violin and""".splitlines()
texts = []
for start in progress(starts):
    options = {"max_tokens": 40, "ignore_eos": True, "temperature": 0.8, "seed": len(texts)}
    pieces = model.complete(start, **options)
    texts.append(start + "".join([piece.text async for piece in pieces]))

# %%
sae = await glass.train_autoencoder(model, texts, hook, features=64, k=4, steps=100)
sae

# %%
found = await glass.features(model, texts[0], sae, k=4)
plot.heat(found["activations"], rows=found["features"], columns=found["texts"], title="Features")

# %% [markdown]
# What else a feature promotes, and how to steer by it, is in the panel "Features", where this one is
# open now.

# %%
await glass.open_autoencoder(model, sae)
