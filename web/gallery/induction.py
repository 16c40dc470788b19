# %% [markdown]
# # Find the induction heads
#
# An induction head looks for what followed the same token before: it completes patterns. Random
# tokens that come twice show which heads do that: the share of their attention on the token behind
# the first copy.

# %%
from inpage import glass

half = np.random.default_rng(1).integers(20, model.vocabulary - 20, 12).tolist()
names = [name for name in glass.hooks(model) if name.endswith("attn.hook_pattern")]
_, cache = await glass.run_with_cache(model, half + half, names, return_type=None)

# %%
shares = [
    np.diagonal(cache[name][0], 1 - len(half), 1, 2)[:, -len(half) + 1 :].mean(-1) for name in names
]
plot.heat(
    shares,
    rows=[f"layer {name.split('.')[1]}" for name in names],
    title="Share of induction",
    labels=("head", ""),
)

# %%
best = sorted(
    (
        (float(share), name, head)
        for name, row in zip(names, shares)
        for head, share in enumerate(row)
    ),
    reverse=True,
)
[{"head": f"{name.split('.')[1]}.{head}", "share": share} for share, name, head in best[:6]]
