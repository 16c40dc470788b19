# %% [markdown]
# # The next token's candidates
#
# A language model gives every token of its vocabulary a probability. These are the ten best after
# your text: change it and run the cell again.

# %%
text = "The capital of France is"
asked = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 10}
async for piece in model.complete(text, **asked, ignore_eos=True):
    for drawn in piece.logprobs:
        best = drawn.top

shares = {repr(model.tokenizer.decode([id])): float(np.exp(logprob)) for id, logprob in best}
plot.bars(shares, title=f"After “{text}”")
