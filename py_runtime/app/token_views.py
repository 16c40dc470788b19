"""The tokens behind a message: the exact prompt, and how likely each token was."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_runtime.app.shown_tokens import Json, ShownTokens
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import ContextLengthError, RequestError
from py_runtime.chat.request import ChatRequest
from py_runtime.generation.messages import parse_messages
from py_runtime.model.model import ChatPrompt
from py_runtime.sampling.scores import Choice, Scorer

if TYPE_CHECKING:
    from py_runtime.app.load_progress import Emit
    from py_runtime.model import Model

MOST = 50  # alternatives a token
TELL_AFTER = 8  # tokens


async def prompt_view(
    model: "Model", *, messages: Any, request: Mapping[str, Any] | None = None
) -> Json:
    """Describe the prompt that a chat completion begins with, token by token.

    `request` has the completion's other fields. A token of the template has no `message`; the
    others have the place of theirs in `messages`.
    """
    prompt = model.chat_prompt(messages, request or {})
    begun = prompt.options.continue_token_ids
    return {
        "tokens": _prompt_tokens(model, messages, prompt, len(prompt.ids) - len(begun)),
        "dropped_messages": prompt.dropped_messages,
        "model": model.manifest.name,
    }


async def tokens_view(model: "Model", *, ids: Any = None, text: Any = None) -> Json:
    """Describe the tokens of an answer: its `ids`, or where those are not known its `text`."""
    shown = ShownTokens(model.tokenizer, model.prompts.shown_tokens(ChatRequest()), model.end_tokens)
    return {"tokens": [shown.push(token) for token in _answer_tokens(model, ids, text)]}


async def score_view(
    model: "Model",
    *,
    messages: Any,
    request: Mapping[str, Any] | None = None,
    ids: Any = None,
    text: Any = None,
    message: int | None = None,
    top: int = 10,
    emit: "Emit",
    cancel: CancelToken,
) -> Json:
    """Score the tokens of an answer to these messages, or of one of the messages themselves.

    The answer is `ids`, or where those are not known the `text` that it has; `message` is the place
    of a message instead. `request` has the fields that the answer was asked with: its sampling
    settings say which tokens they cut off.
    """
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MOST:
        raise RequestError(f"top must be an integer from 1 to {MOST}", "top")
    prompt = model.chat_prompt(messages, request or {})
    if message is None:
        answer = _answer_tokens(model, ids, text)
        tokens, wanted = [*prompt.ids, *answer], range(len(prompt.ids), len(prompt.ids) + len(answer))
    else:
        tokens, wanted = prompt.ids, _places_of(model, messages, prompt, message)
    if len(tokens) > model.context:
        raise ContextLengthError(len(tokens), model.context)
    shown = ShownTokens(model.tokenizer, model.prompts.shown_tokens(prompt.asked), model.end_tokens)
    scorer: Scorer | None = None
    scored: list[Json] = []
    async for logits in _logits_before(model, tokens, wanted, cancel):
        token = tokens[wanted.start + len(scored)]
        scorer = scorer or Scorer(
            prompt.options.sampling, tokens[: wanted.start], len(logits)
        )
        score = scorer.score(logits, token, top)
        best = [{**shown.other(each.token), **_choice(each)} for each in score.best]
        scored.append(
            {
                **shown.push(token),
                "rank": score.rank,
                "entropy": score.entropy,
                **_choice(score.own),
                "best": best,
            }
        )
        if len(scored) % TELL_AFTER == 0:
            emit({"done": len(scored), "total": len(wanted)})
    return {
        "tokens": scored,
        "context_tokens": wanted.start,
        "about": ids is None and message is None,
        "vocabulary": model.vocabulary,
        "model": model.manifest.name,
    }


def _choice(choice: Choice) -> Json:
    return {"logprob": choice.logprob, "drawn": choice.drawn, "cut": choice.cut}


def _answer_tokens(model: "Model", ids: Any, text: Any) -> list[int]:
    if (ids is None) == (text is None):
        raise RequestError("give either the ids of an answer or its text", "ids")
    return model.prompt_tokens(ids) if text is None else model.tokenizer.encode(str(text), False)


def _places_of(model: "Model", messages: Any, prompt: ChatPrompt, message: int) -> range:
    """Return where the tokens of a message are."""
    described = _prompt_tokens(model, messages, prompt, len(prompt.ids))
    places = [at for at, token in enumerate(described) if token.get("message") == message and at]
    if not places:
        raise RequestError(
            "this model's chat template does not show where the message is in the prompt", "message"
        )
    return range(places[0], places[-1] + 1)


def _prompt_tokens(
    model: "Model", messages: Any, prompt: ChatPrompt, count: int
) -> list[Json]:
    """Describe the prompt's first `count` tokens, with the message that each is of."""
    parsed = parse_messages(messages)
    first = 1 if parsed[0]["role"] == "system" else 0
    left = [at for at in range(len(parsed)) if not first <= at < first + prompt.dropped_messages]
    options = prompt.options
    text, spans = model.prompts.contents(
        [parsed[at] for at in left],
        prompt.asked,
        options.allow_special,
        options.continue_final_message,
    )
    shown = ShownTokens(model.tokenizer)
    described = [shown.push(token) for token in prompt.ids[:count]]
    place = 0  # in the prompt's text
    for token in described:
        found = text.find(token["text"], place, place + len(token["text"]) + 2)
        start = place if found < 0 else found
        for span in spans:
            if span.start < start + len(token["text"]) and start < span.stop:
                token["message"] = left[span.message]
                token["role"] = parsed[left[span.message]]["role"]
        if found >= 0:
            place = start + len(token["text"])
    return described


async def _logits_before(
    model: "Model", tokens: Sequence[int], wanted: range, cancel: CancelToken
) -> AsyncIterator[np.ndarray]:
    """Yield the logits [V] that each of the wanted tokens was drawn from."""
    async with model.idle():
        with model.while_loaded():
            for at in wanted:
                yield await model.session.logits_after(tokens[:at], cancel)
