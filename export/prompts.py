"""The texts every export is tried on: five chat turns, and a page of prose for perplexity."""

from pathlib import Path
from typing import Any

from py_runtime.chat.template import ChatTemplate
from py_runtime.tokens import Tokenizer

SAMPLE = Path(__file__).with_name("sample.txt")
CHAT_TURNS = (
    "What is gravity?",
    "Write a haiku about the sea.",
    "Explain what a list comprehension in Python is, with an example.",
    "Give me three tips for sleeping better.",
    "Translate to French: The weather is nice today, and we are going to the market.",
)


def golden_prompts(tokenizer_files: dict[str, Any]) -> list[list[int]]:
    """Chat turns through the model's own template; plain text where it has none."""
    tokenizer = Tokenizer.from_json(tokenizer_files["tokenizer.json"])
    config = tokenizer_files["tokenizer_config.json"]
    if not config.get("chat_template"):
        return [tokenizer.encode(text) for text in CHAT_TURNS]
    template = ChatTemplate.from_config(config)
    return [
        tokenizer.encode(
            template.render([{"role": "user", "content": text}], add_generation_prompt=True),
            add_special_tokens=False,
        )
        for text in CHAT_TURNS
    ]


def sample_tokens(tokenizer_files: dict[str, Any]) -> list[int]:
    """Return the tokens of export/sample.txt."""
    tokenizer = Tokenizer.from_json(tokenizer_files["tokenizer.json"])
    return tokenizer.encode(SAMPLE.read_text(encoding="utf-8"))
