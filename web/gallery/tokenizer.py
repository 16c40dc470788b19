# %% [markdown]
# # A map of the tokenizer
#
# The model reads pieces of words. See where your text falls apart: rare words need more pieces, and
# a space belongs to the word behind it.

# %%
text = "The tokenizer splits unbelievably long words, and Donaudampfschifffahrt."
ids = model.tokenizer.encode(text)
[{"place": at, "id": id, "piece": repr(model.tokenizer.decode([id]))} for at, id in enumerate(ids)]

# %%
print(f"{len(text)} characters, {len(ids)} tokens: {len(text) / len(ids):.1f} characters a token")

# %% [markdown]
# How long the pieces of the whole vocabulary are:

# %%
from collections import Counter

sample = range(0, model.tokenizer.vocabulary_size, max(1, model.tokenizer.vocabulary_size // 4000))
lengths = Counter(len(model.tokenizer.decode([id])) for id in sample)
plot.bars({f"{length} characters": lengths[length] for length in sorted(lengths)[:16]})
