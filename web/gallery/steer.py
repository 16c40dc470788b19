# %% [markdown]
# # Steer it
#
# Two texts that differ in one thing give a direction: the difference of what is in the middle layer
# behind them. Added while the model writes, it turns the answer that way.

# %%
from inpage import glass

behind_layers = [name for name in glass.hooks(model) if name.endswith("hook_resid_post")]
hook = behind_layers[len(behind_layers) // 2]


async def behind(text):
    _, cache = await glass.run_with_cache(model, text, [hook], return_type=None)
    return cache[hook][0].mean(0)


direction = await behind("I love this, it is wonderful and great") - await behind(
    "I hate this, it is awful and bad"
)

# %%
for strength in (-2, 0, 2):
    edit = glass.Edit(hook, vector=direction, strength=strength, name="mood")
    async with glass.steered(model, [edit]):
        print(f"strength {strength}: ", end="")
        async for piece in model.complete("I think that the film", max_tokens=16, temperature=0):
            print(piece.text, end="", flush=True)
        print()
