# %% [markdown]
# # Train a small autoencoder on this layer
#
# A layer holds more ideas than it has numbers. A sparse autoencoder learns directions of which a
# few at a time rebuild what is there. The model writes the text to learn from; try others.

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
    pieces = model.complete(start, max_tokens=40, temperature=0.8, ignore_eos=True, seed=1)
    texts.append(start + "".join([piece.text async for piece in pieces]))

# %%
sae = await glass.train_autoencoder(model, texts, hook, features=64, k=4, steps=100)
sae

# %%
found = await glass.features(model, texts[0], sae, k=4)
plot.heat(found["activations"], rows=found["features"], columns=found["texts"], title="Features")

# %% [markdown]
# The panel "Features" shows what each promotes, and steers by it.

# %%
await glass.open_autoencoder(model, sae)
