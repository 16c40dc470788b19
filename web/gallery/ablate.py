# %% [markdown]
# # Ablate a head
#
# What is a head for? Turn it off and see how much less likely the text becomes. Where nothing
# changes, others do its work; where much does, the text needed it.

# %%
from inpage import glass

text = "When Mary and John went to the store, John gave a drink to Mary"


async def likelihood():
    found = await glass.score(model, text)
    return float(np.mean([each.logprob for each in found[1:-1]]))


names = [name for name in glass.hooks(model) if name.endswith("attn.hook_z")]
heads = 4  # the first ones of each layer; more take longer
whole = await likelihood()

# %%
losses = []
for name in progress(names[:6], "layers"):
    row = []
    for head in range(heads):
        async with glass.steered(model, [glass.Edit(name, "ablate", heads=(head,))]):
            row.append(whole - await likelihood())
    losses.append(row)
plot.heat(
    losses,
    rows=[name.split(".")[1] for name in names[:6]],
    title="What is lost without a head",
    labels=("head", "layer"),
)
