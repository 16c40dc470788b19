"""The tokens behind a chat's messages: the exact prompt, and how likely each token was."""

from typing import Any

import numpy as np

from py_runtime.app.shown_tokens import ShownTokens
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import ContextLengthError, RequestError
from py_runtime.chat.request import ChatRequest
from py_runtime.generation.messages import parse_messages
from py_runtime.generation.options import unknown_field
from py_runtime.glass.rows import Progress, take_rows
from py_runtime.model import Model
from py_runtime.model.chat_prompts import ChatPrompt
from py_runtime.sampling.scores import Choice, Scorer

BEST = 10  # alternatives a token
MOST = 50

Fields = dict[str, Any]
Json = dict[str, Any]


async def message_prompt(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Json:
    """Describe the prompt that a chat completion begins with: {messages, request}.

    `request` has the completion's other fields. A token of the template has no `message`; the
    others have the place of theirs in `messages`.
    """
    messages, request = fields.pop("messages", None), fields.pop("request", None)
    _all_taken(fields)
    prompt = model.chat_prompt(messages, request or {})
    begun = prompt.options.continue_token_ids
    return {
        "tokens": _prompt_tokens(model, messages, prompt, len(prompt.ids) - len(begun)),
        "dropped_messages": prompt.dropped_messages,
        "model": model.manifest.name,
    }


async def message_tokens(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Json:
    """Describe the tokens of an answer: its `ids`, or where those are not known its `text`."""
    ids, text = fields.pop("ids", None), fields.pop("text", None)
    _all_taken(fields)
    shown = ShownTokens(
        model.tokenizer, model.prompts.shown_tokens(ChatRequest()), model.end_tokens
    )
    return {"tokens": [shown.push(token) for token in _answer_tokens(model, ids, text)]}


async def message_score(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Json:
    """Score the tokens of an answer to `messages`, or of one of these messages.

    The answer is `ids`, or where those are not known the `text` that it has; `message` is the place
    of a message instead. `request` has the fields that the answer was asked with: its sampling
    settings say which tokens they cut off. `k` others are given beside each token.
    """
    names = ("messages", "request", "ids", "text", "message", "k")
    messages, request, ids, text, message, k = (fields.pop(name, None) for name in names)
    _all_taken(fields)
    k = BEST if k is None else k
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST:
        raise RequestError(f"k must be an integer from 1 to {MOST}", "k")
    prompt = model.chat_prompt(messages, request or {})
    if message is None:
        answer = _answer_tokens(model, ids, text)
        tokens, first = [*prompt.ids, *answer], len(prompt.ids)
    else:
        places = _places_of(model, messages, prompt, message)
        tokens, first = prompt.ids[: places.stop], places.start
    if len(tokens) > model.context:
        raise ContextLengthError(len(tokens), model.context)
    return {
        "tokens": await _scored(model, prompt, tokens, first, k, progress, cancel),
        "context_tokens": first,
        "about": ids is None and message is None,
        "vocabulary": model.vocabulary,
        "model": model.manifest.name,
    }


MESSAGE_VIEWS = {
    "message_prompt": message_prompt,
    "message_score": message_score,
    "message_tokens": message_tokens,
}


async def _scored(
    model: Model,
    prompt: ChatPrompt,
    tokens: list[int],
    first: int,
    k: int,
    progress: Progress,
    cancel: CancelToken,
) -> list[Json]:
    """Describe the tokens from `first` on, with their scores."""
    scored: list[Json] = []
    scorer: Scorer
    shown: ShownTokens

    def take(at: int, logits: np.ndarray) -> None:
        nonlocal scorer, shown
        if at == first:  # perhaps not for the first time
            scored.clear()
            shown_names = model.prompts.shown_tokens(prompt.asked)
            shown = ShownTokens(model.tokenizer, shown_names, model.end_tokens)
            scorer = Scorer(prompt.options.sampling, tokens[:first], len(logits))
        score = scorer.score(logits, tokens[at], k)
        best = [{**shown.other(each.token), **_choice_json(each)} for each in score.best]
        own = {**shown.push(tokens[at]), **_choice_json(score.own)}
        scored.append({**own, "rank": score.rank, "entropy": score.entropy, "best": best})

    await take_rows(model, tokens, first, take, progress, cancel)
    return scored


def _choice_json(choice: Choice) -> Json:
    return {"logprob": choice.logprob, "drawn": choice.drawn, "cut": choice.cut}


def _answer_tokens(model: Model, ids: Any, text: Any) -> list[int]:
    if (ids is None) == (text is None):
        raise RequestError("give either the ids of an answer or its text", "ids")
    if text is None:
        return model.prompt_tokens(ids)
    if not isinstance(text, str) or not text:
        raise RequestError("text must be a text, not empty", "text")
    return model.tokenizer.encode(text, add_special_tokens=False)


def _places_of(model: Model, messages: Any, prompt: ChatPrompt, message: Any) -> range:
    """Return where the tokens of a message are."""
    described = _prompt_tokens(model, messages, prompt, len(prompt.ids))
    places = [at for at, token in enumerate(described) if token.get("message") == message and at]
    if not places:
        raise RequestError(
            "this model's chat template does not show where the message is in the prompt", "message"
        )
    return range(places[0], places[-1] + 1)


def _prompt_tokens(model: Model, messages: Any, prompt: ChatPrompt, count: int) -> list[Json]:
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
        spelled = token["text"]
        found = text.find(spelled, place, place + len(spelled) + 2)
        start = place if found < 0 else found
        for span in spans:
            if span.start < start + len(spelled) and start < span.stop:
                token["message"] = left[span.message]
                token["role"] = parsed[left[span.message]]["role"]
        if found >= 0:
            place = start + len(spelled)
    return described


def _all_taken(fields: Fields) -> None:
    """Refuse what no view knows: no field is ignored."""
    if fields:
        raise unknown_field(next(iter(fields)))
