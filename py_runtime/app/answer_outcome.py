"""The outcome of an answer, for people: why it ended, its tokens, and where its time went."""

from py_runtime.base.messages import Message, message
from py_runtime.generation.pieces import Piece, Usage

ENDS = {"abort": "answer_stopped", "length": "answer_cut"}


def outcome(last: Piece, seconds: float) -> list[Message]:
    """Return the outcome of an answer from its last piece and the seconds it took."""
    usage = last.usage
    assert usage is not None, "the last piece has the usage"
    messages = []
    if last.finish_reason == "length" and usage.fills_context:
        messages.append(message("context_full"))
    elif last.finish_reason in ENDS:
        messages.append(message(ENDS[last.finish_reason]))
    messages.append(message("answer_tokens", tokens=usage.completion_tokens))
    messages.append(_time(usage, seconds))
    if rate := usage.decode_tokens_per_s:
        messages.append(message("answer_speed", tokens_per_second=rate))
    if dropped := usage.dropped_messages:
        messages.append(message("messages_left_out", count=dropped))
    if slid := usage.slid_tokens:
        messages.append(message("tokens_slid_out", count=slid))
    return messages


def _time(usage: Usage, seconds: float) -> Message:
    """Return the whole time and its parts, which add up to it, tenth by tenth."""
    rate, first = usage.decode_tokens_per_s, usage.time_to_first_token_s
    if first is None:
        return message("answer_seconds", seconds=seconds)
    seeing = round(10 * usage.images_s)
    reading = max(round(10 * first) - seeing, 0)
    writing = round(10 * (usage.completion_tokens - 1) / rate) if rate else 0
    preparing = max(
        round(10 * seconds) - seeing - reading - writing, 0
    )  # for pipelines, or other answers
    tenths = {
        "spent_preparing": preparing,
        "spent_on_images": seeing,
        "spent_reading": reading,
        "spent_writing": writing,
    }
    spent = [message(code, seconds=each / 10) for code, each in tenths.items() if each]
    whole = sum(tenths.values()) / 10
    if not spent:
        return message("answer_seconds", seconds=whole)
    return message("answer_seconds_spent", seconds=whole, spent=spent)
