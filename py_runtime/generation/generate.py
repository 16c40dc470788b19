"""Generation of an answer's text from tokens; it can be stopped at any token."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.generation.device_tokens import DeviceTokens
from py_runtime.generation.host_tokens import HostTokens, OtherPrompt
from py_runtime.generation.options import GenerationOptions
from py_runtime.generation.pieces import Drawn, Piece, Usage, Work
from py_runtime.generation.session import PrefillProgress, Session
from py_runtime.generation.sliding import Slide
from py_runtime.grammar import Grammar
from py_runtime.sampling import StopStrings, TokenLogprob
from py_runtime.tokens import StreamDecoder, Tokenizer


@dataclass(frozen=True)
class Generation:
    """One answer to be made, with everything in it checked."""

    prompt: list[int]
    options: GenerationOptions
    room: int  # most tokens that may be written
    end_tokens: frozenset[int]
    grammar: Grammar | None
    dropped_messages: int = 0
    other: OtherPrompt | None = None  # which is contrasted with the prompt
    fills_context: bool = False  # with all tokens that may be written
    slide: Slide | None = None  # what may go when the context is full

    def slid_tokens(self, written: int) -> int:
        """Return how many tokens have slid out of the context to write so many."""
        return 0 if self.slide is None else self.slide.dropped(len(self.prompt) + written - 1)

    def usage(self, cached_tokens: int) -> Usage:
        return Usage(
            len(self.prompt),
            cached_tokens,
            dropped_messages=self.dropped_messages,
            sampling=self.options.sampling,
        )


class Clock:
    """A clock for one answer: its start, its first token, its speed and its work."""

    def __init__(self, usage: Usage, session: Session) -> None:
        self._usage = usage
        self._session = session
        self._started = time.perf_counter()
        self._images_before = session.images_s
        self._counted_before = self._counted()

    def _counted(self) -> tuple[int, int, int, int]:
        seen = self._session.speculation
        return seen.proposed, seen.accepted, seen.draft.proposed, seen.draft.accepted

    def token(self) -> None:
        usage = self._usage
        usage.completion_tokens += 1
        if usage.completion_tokens > 1:
            return
        self._first = time.perf_counter()
        self._waited = self._session.waited_s
        self._counters = self._session.graph.device.counters
        self._before = replace(self._counters)
        seconds = self._first - self._started
        usage.time_to_first_token_s = seconds
        usage.images_s = self._session.images_s - self._images_before
        computed = usage.prompt_tokens - usage.cached_tokens
        usage.prefill_tokens_per_s = computed / max(seconds - usage.images_s, 1e-9)

    def stop(self) -> None:
        """Stop the clock and compute the figures of what came after the first token."""
        tokens = self._usage.completion_tokens - 1
        if tokens < 1:
            return
        usage = self._usage
        (
            usage.proposed_tokens,
            usage.accepted_tokens,
            usage.drafted_tokens,
            usage.accepted_drafted_tokens,
        ) = (now - was for now, was in zip(self._counted(), self._counted_before, strict=True))
        seconds = time.perf_counter() - self._first
        self._usage.decode_tokens_per_s = tokens / max(seconds, 1e-9)
        waited = self._session.waited_s - self._waited
        now, before = self._counters, self._before
        submitting = now.submitting_s - before.submitting_s
        self._usage.work = Work(
            dispatches=(now.dispatches - before.dispatches) / tokens,
            submits=(now.submits - before.submits) / tokens,
            bytes_written=(now.bytes_written - before.bytes_written) / tokens,
            bytes_read=(now.bytes_read - before.bytes_read) / tokens,
            python_ms=1e3 * (seconds - waited - submitting) / tokens if waited else None,
            submitting_ms=1e3 * submitting / tokens,
        )


async def generate(
    session: Session,
    tokenizer: Tokenizer,
    wanted: Generation,
    cancel: CancelToken,
    on_prefill: PrefillProgress,
) -> AsyncIterator[Piece]:
    """Yield pieces of the answer; the last has a finish_reason and the usage."""
    options = wanted.options
    prompt = wanted.prompt
    if wanted.slide is not None:
        prompt = wanted.slide.seen(prompt)
        await session.device.survive(lambda: session.slide_towards(prompt), cancel)
    usage = wanted.usage(session.reusable(prompt))
    clock = Clock(usage, session)
    text = AnswerText(tokenizer, options)

    def last_piece(finish_reason: str) -> Piece:
        clock.stop()
        return text.take_last(finish_reason, usage)

    try:
        drawn_in = token_batches(session, tokenizer, wanted, cancel, on_prefill)
        async with aclosing(drawn_in) as batches:
            async for batch in batches:
                for drawn in batch:
                    clock.token()
                    usage.slid_tokens = wanted.slid_tokens(usage.completion_tokens)
                    ended = drawn.token in wanted.end_tokens and not options.ignore_eos
                    text.push(drawn.token, drawn.logprobs, is_end=ended)
                    if ended or text.stopped or drawn.is_last:
                        yield last_piece("stop")
                        return
                    if usage.completion_tokens == wanted.room:
                        usage.fills_context = wanted.fills_context
                        yield last_piece("length")
                        return
                if piece := text.take():
                    yield piece
    except AbortedError:
        yield last_piece("abort")


def token_batches(
    session: Session,
    tokenizer: Tokenizer,
    wanted: Generation,
    cancel: CancelToken,
    on_prefill: PrefillProgress,
) -> AsyncGenerator[list[Drawn], None]:
    """Draw on the GPU if nothing needs the host and the graph allows it, else on the host."""
    options = wanted.options
    needs_logits = (
        options.sampler is not None
        or bool(options.steps)
        or options.top_logprobs is not None
        or wanted.grammar is not None
    )
    if not needs_logits and session.can_loop:
        sampling, room = options.sampling, wanted.room
        drawn = DeviceTokens(
            session, wanted.prompt, sampling, room, cancel, options.speculate, wanted.slide
        )
        return drawn.batches(on_prefill)

    def text_of(token: int) -> str:
        return tokenizer.decode([token], skip_special_tokens=False)

    grammar, room = wanted.grammar, wanted.room
    tokens = HostTokens(
        session,
        wanted.prompt,
        options,
        grammar,
        room,
        cancel,
        text_of,
        wanted.other,
        wanted.slide,
    )
    return tokens.batches(on_prefill)


@dataclass(frozen=True)
class WrittenToken:
    """A token of the answer that a stop string may still take back."""

    token: int
    logprobs: tuple[TokenLogprob, ...]
    start: int  # where its text begins, in characters of the answer


class AnswerText:
    """The shown text of an answer: whole characters, and nothing of a stop string."""

    def __init__(self, tokenizer: Tokenizer, options: GenerationOptions) -> None:
        self._decoder = StreamDecoder(tokenizer, shown=options.shown_tokens)
        self._decoder.push_all(options.continue_token_ids)  # whose text the caller has
        self._stops = StopStrings(options.stop)
        self._written: list[WrittenToken] = []  # whose text may still become a stop string
        self._length = 0  # of the text so far
        self._shown = 0  # of it that may be shown
        self._text = ""  # that may be shown and was not taken yet

    @property
    def stopped(self) -> bool:
        return self._stops.stopped

    def push(self, token: int, logprobs: tuple[TokenLogprob, ...], is_end: bool) -> None:
        self._written.append(WrittenToken(token, logprobs, self._length))
        if not is_end:
            self._add(self._decoder.push(token))

    def take(self) -> Piece | None:
        """Return what may be shown since the last call, if anything."""
        everything = self._shown == self._length
        ready = [entry for entry in self._written if everything or entry.start < self._shown]
        del self._written[: len(ready)]
        text, self._text = self._text, ""
        if not text and not ready:
            return None
        return Piece(
            text,
            tuple(entry.token for entry in ready),
            tuple(logprob for entry in ready for logprob in entry.logprobs),
        )

    def take_last(self, finish_reason: str, usage: Usage) -> Piece:
        """Return the last piece, including what was held back."""
        self._add(self._decoder.finish())
        self._show(self._stops.finish())  # as above, nothing where a stop was found
        return replace(self.take() or Piece(), finish_reason=finish_reason, usage=usage)

    def _add(self, text: str) -> None:
        self._length += len(text)
        self._show(self._stops.push(text))

    def _show(self, text: str) -> None:
        self._shown += len(text)
        self._text += text
