# %% [markdown]
# # Logit lens
#
# What would the model say if it stopped after a layer? Each row is a layer, each column a token of
# the text: the word is what that layer would predict next. Look for the layer where the answer appears.

# %%
from inpage import glass

found = await glass.lens(model, "The capital of France is")
[
    dict(zip(["layer", *found["texts"]], [name, *row]))
    for name, row in zip(found["layers"], found["top_texts"])
]

# %% [markdown]
# How likely the final answer is at each layer, behind the last token:

# %%
likely = np.array(found["token_prob"])[:, -1]
plot.lines(likely, title=f"Probability of {found['token_text']!r}", labels=("layer", "probability"))
