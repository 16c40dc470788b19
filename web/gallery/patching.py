# %% [markdown]
# # Patch two prompts
#
# Two texts that call for different answers. One number of the first run at a time is put into the
# second: bright places are where the answer is decided.

# %%
from inpage import glass

answers = [model.tokenizer.encode(word, False)[-1] for word in (" Paris", " Oslo")]
texts = "The capital of France is", "The capital of Norway is"
found = await glass.patch(model, *texts, answers=answers, sites=["resid_pre"])
found["difference"]

# %%
(effects,) = found["effects"].values()
plot.heat(
    effects,
    columns=found["clean"]["texts"],
    title="Share of the answer that is restored",
    labels=("token", "layer"),
)
