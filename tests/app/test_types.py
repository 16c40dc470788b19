"""web/inpage.d.ts says what the engine really answers: tsc reads both.

That web/api.js offers what the file says, and nothing else, is part of `make lint`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import ApiPage
from tests.toy_model import NAME
from tools.files import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

STRICT = (
    *("--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "esnext"),
    *("--module", "esnext", "--moduleResolution", "bundler", "--lib", "esnext,dom"),
)
SMALL = {"temperature": 0, "max_tokens": 3, "logprobs": True, "top_logprobs": 2}
STREAMED = {"stream": True, "stream_options": {"include_usage": True, "include_progress": True}}
MESSAGES = [{"role": "user", "content": "fox"}]
CALLING = {
    "messages": MESSAGES,
    "tools": [{"type": "function", "function": {"name": "now"}}],
    "tool_choice": "required",
}
CHUNKS = """const chunks = [];
for await (const chunk of inpage.COMPLETIONS.create(given)) chunks.push(chunk);
return chunks"""
TYPES = (
    *("ChatCompletion", "ChatCompletionChunk", "Completion", "CompletionChunk"),
    *("Embeddings", "Inpage", "InpageError", "LoadProgress", "Message"),
)
# How the types are used, and misused; never run.
USE = """
async function use(signal: AbortSignal, either: boolean) {
  const messages: Message[] = [{ role: "user", content: "Hello" }];
  for await (const chunk of inpage.chat.completions.create({ messages, stream: true, signal })) {
    const text: string | undefined = chunk.choices[0]?.delta.content;
    const call: string | undefined = chunk.choices[0]?.delta.tool_calls?.[0]?.function.name;
  }
  const { choices: [{ text }] } = await inpage.completions.create({ prompt: "A list of", seed: 7 });
  const length: number = text.length;
  const unknown = inpage.completions.create({ prompt: "", stream: either });
  // @ts-expect-error: it may be an iterator
  unknown.then;
  // @ts-expect-error: a chat has messages
  inpage.chat.completions.create({ prompt: "Hello" });
  // @ts-expect-error: no such field
  inpage.completions.create({ prompt: "Hello", best_of: 2 });
  // @ts-expect-error: a whole answer is not iterated over
  for await (const chunk of inpage.chat.completions.create({ messages })) chunk;
  inpage.onNotice(({ kind, text }) => `${kind} ${text}`)();
  inpage.load("x").catch(({ code }: InpageError) => code === "aborted");
}
"""


def complaints(tmp_path: Path, answers: dict[str, tuple[str, Any]], more: str = "") -> str:
    """Return what tsc says about answers (name → type, value) as values of these types."""
    web = (ROOT / "web" / "inpage").as_posix()
    lines = [f'import type {{ {", ".join(TYPES)} }} from "{web}";']
    lines.append("type Answer<Call extends (...args: any) => any> = Awaited<ReturnType<Call>>;")
    lines += [f"export const {n}: {kind} = {json.dumps(v)};" for n, (kind, v) in answers.items()]
    source = tmp_path / "answers.ts"
    source.write_text("\n".join([*lines, more]))
    command = [str(ROOT / "node_modules/.bin/tsc"), *STRICT, str(source)]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout


def test_answers_are_as_declared(api: ApiPage, tmp_path: Path) -> None:
    load = """const steps = [];
        const loaded = await inpage.load(given, { onProgress: (step) => steps.push(step) });
        return [loaded, steps]"""
    loaded, steps = api.run(load, NAME)
    chat = {"messages": MESSAGES, **SMALL}
    prompt = {"prompt": "fox", **SMALL}
    error = api.fails("await inpage.completions.create(given)", {"prompt": "fox", "top_k": -1})
    del error["isError"]
    answers = {
        "ready": ('Awaited<Inpage["ready"]>', api.run("return inpage.ready")),
        "models": ('Answer<Inpage["models"]>', api.run("return inpage.models()")),
        "loaded": ('NonNullable<Inpage["loaded"]>', loaded),
        "steps": ("LoadProgress[]", steps),
        "stored": ('Answer<Inpage["stored"]>', api.run("return inpage.stored()")),
        "counted": (
            'Answer<Inpage["countTokens"]>',
            api.run("return inpage.countTokens(given)", MESSAGES),
        ),
        "verified": ('Answer<Inpage["verify"]>', api.run("return inpage.verify()")),
        "chatted": (
            "ChatCompletion",
            api.run("return inpage.chat.completions.create(given)", chat),
        ),
        "embedded": (
            "Embeddings",
            api.run("return inpage.embeddings.create(given)", {"input": ["fox", "the fox"]}),
        ),
        "called": (
            "ChatCompletion",
            api.run("return inpage.chat.completions.create(given)", CALLING),
        ),
        "calledChunks": (
            "ChatCompletionChunk[]",
            api.run(CHUNKS.replace("COMPLETIONS", "chat.completions"), CALLING | STREAMED),
        ),
        "completed": (
            "Completion",
            api.run("return inpage.completions.create(given)", prompt),
        ),
        "chatChunks": (
            "ChatCompletionChunk[]",
            api.run(CHUNKS.replace("COMPLETIONS", "chat.completions"), chat | STREAMED),
        ),
        "chunks": (
            "CompletionChunk[]",
            api.run(CHUNKS.replace("COMPLETIONS", "completions"), prompt | STREAMED),
        ),
        "error": ('Omit<InpageError, "stack" | "cause">', error),
    }
    assert all(value for _, value in answers.values())
    assert complaints(tmp_path, answers, USE) == ""


def test_answers_that_are_not_as_declared_are_found(tmp_path: Path) -> None:
    kind = 'Answer<Inpage["countTokens"]>'
    answers = {
        "right": (kind, {"prompt_tokens": 3, "context": 512}),
        "another": (kind, {"prompt_tokens": 3, "context": "512"}),
        "less": (kind, {"prompt_tokens": 3}),
        "more": (kind, {"prompt_tokens": 3, "context": 512, "more": 1}),
    }
    another, less, more = complaints(tmp_path, answers).splitlines()
    assert "Type 'string' is not assignable" in another
    assert "Property 'context' is missing" in less
    assert "does not exist in type" in more
