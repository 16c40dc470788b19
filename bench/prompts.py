"""The prompts of the bench: texts of exact lengths, and one whose continuation torch knows."""

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from bench.engines import PROMPT_LENGTHS
from py_runtime.tokens import Tokenizer
from tools.errors import UserError
from tools.files import ROOT

SAMPLE = ROOT / "export" / "sample.txt"
VARIANTS = 8  # of each length

Prompt = dict[str, Any]  # its ids, and the text that every tokenizer reads as these ids


def make_prompts(model: Path) -> dict[str, Any]:
    """JSON: "check" with its continuation, and "contexts": context → prompts."""
    tokenizer = Tokenizer.from_json(json.loads((model / "tokenizer.json").read_text()))
    goldens = load_file(model / "goldens.safetensors")
    check = as_prompt(tokenizer, goldens["prompt_0"].tolist())
    if check is None:
        raise UserError(f"the first golden prompt of {model} is not text: export the model again")
    check["continuation"] = goldens["continuation_0"].tolist()
    sample = tokenizer.encode(SAMPLE.read_text(encoding="utf-8"), add_special_tokens=False)
    taken: set[int] = set()
    return {
        "check": check,
        "contexts": {
            str(context): cut(tokenizer, sample, length, taken)
            for context, length in PROMPT_LENGTHS.items()
        },
    }


def cut(tokenizer: Tokenizer, sample: list[int], length: int, taken: set[int]) -> list[Prompt]:
    """Pieces of the sample, read round and round, each from another word on.

    None begins with a token that is taken, by a prompt of another length either: an engine that
    meets a prefix it has kept would be told to be faster than it is.
    """
    endless = sample * (length // len(sample) + 2)
    prompts: list[Prompt] = []
    for start in range(len(sample)):
        prompt = as_prompt(tokenizer, endless[start : start + length])
        if prompt and prompt["ids"][0] not in taken:
            taken.add(prompt["ids"][0])
            prompts.append(prompt)
        if len(prompts) == VARIANTS:
            return prompts
    raise UserError(f"{SAMPLE} does not give {VARIANTS} prompts of {length} tokens")


def as_prompt(tokenizer: Tokenizer, ids: list[int]) -> Prompt | None:
    """None where the text would be read as other ids."""
    text = tokenizer.decode(ids, skip_special_tokens=False)
    same = tokenizer.encode(text, add_special_tokens=False) == ids
    return {"ids": ids, "text": text} if same else None
