"""llama.cpp as an oracle: its logits, greedy tokens and tokenizer, by way of node-llama-cpp."""

import base64
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tools.files import BUILD

INSTALLED = BUILD / "llama_cpp"  # by `make test-llama-cpp`
DRIVER = Path(__file__).with_name("driver.mjs")


class LlamaCppError(Exception):
    """A file that llama.cpp refuses, or cannot compute; the text is its own."""


@dataclass(frozen=True)
class Continuation:
    """The likeliest tokens after a prompt, and the logits that each was chosen by."""

    tokens: list[int]
    logits: np.ndarray  # f32 [steps, vocabulary]


@dataclass(frozen=True)
class Answer:
    """The answer of llama.cpp for a file."""

    continuations: list[Continuation]
    texts: list[list[int]]  # as tokens, without a token that begins every text


class LlamaCpp:
    """A process that answers for many files.

    A file that makes it abort does not end the rest: the next request starts it anew.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)

    def ask(
        self,
        file: Path,
        prompts: Sequence[Sequence[int]],
        steps: int,
        texts: Sequence[str] = (),
    ) -> Answer:
        """Continue each prompt by `steps` tokens, and tokenize the texts."""
        request = {"file": str(file), "prompts": prompts, "steps": steps, "texts": texts}
        reply = self._exchange(json.dumps(request))
        if "error" in reply:
            raise LlamaCppError(reply["error"])
        continuations = [
            Continuation(found["tokens"], np.stack([_decode(row) for row in found["logits"]]))
            for found in reply["continuations"]
        ]
        return Answer(continuations, reply["texts"])

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.terminate()
            self._process.communicate()
        self._errors.close()

    def _exchange(self, line: str) -> dict[str, Any]:
        if self._process is None:
            assert INSTALLED.is_dir(), "Run: make build/llama_cpp/.installed"
            self._process = subprocess.Popen(
                ["node", str(DRIVER)],
                cwd=INSTALLED,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        if answer := self._process.stdout.readline():
            reply: dict[str, Any] = json.loads(answer)
            return reply
        status = self._process.wait()
        self._process = None
        self._errors.seek(0)
        return {"error": f"llama.cpp ended with status {status}\n{self._errors.read()}"}


def _decode(row: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(row), np.float32)
