# %% [markdown]
# # How long does a token take
#
# The model writes 40 tokens, and a clock looks at each. The first one is the slowest: the prompt is
# read before it.

# %%
import time

times, began = [], time.perf_counter()
async for piece in model.complete(
    "Once upon a time", max_tokens=40, temperature=0, ignore_eos=True
):
    now = time.perf_counter()
    times += [(now - began) * 1000 / max(len(piece.token_ids), 1)] * len(piece.token_ids)
    began = now

plot.lines(times, title="Milliseconds of each token", labels=("token", "ms"))

# %%
print(f"{len(times)} tokens, {np.median(times):.1f} ms in the middle, {max(times):.1f} ms at most")
