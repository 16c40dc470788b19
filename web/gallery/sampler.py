# %% [markdown]
# # Write a sampler
#
# A sampler chooses the next token. This one refuses every token with the letter “e”. Change the
# rule: `logits` has a number for each token, larger is likelier.

# %%
pieces = [model.tokenizer.decode([id]) for id in range(model.tokenizer.vocabulary_size)]
banned = np.array(["e" in piece.lower() for piece in pieces])
print(f"{banned.sum():,} of {len(pieces):,} tokens have the letter")


# %%
def without_e(logits, tokens):
    return int(np.where(banned[: len(logits)], -np.inf, logits[: len(banned)]).argmax())


async for piece in model.complete("Once upon a time", sampler=without_e, max_tokens=30):
    print(piece.text, end="", flush=True)
