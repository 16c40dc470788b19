"""DeepSeek's distilled models: decoders of Llama and Qwen, which chat in a way of their own."""

from py_runtime.decoder.conventions import DEEPSEEK, THINK_TAGS, Convention, Markers
from py_runtime.decoder.family import FamilyGroup

# The bars and underlines are DeepSeek's own letters.
SEPARATOR = "<｜tool▁sep｜>"  # noqa: RUF001
CALLS = Convention(
    rank=7,
    known_by=("<｜tool▁call▁begin｜>",),  # noqa: RUF001
    calls=(Markers("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", DEEPSEEK),),  # noqa: RUF001
    forced="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",  # noqa: RUF001
    silent=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),  # noqa: RUF001
    inner=(SEPARATOR,),
)

GROUP = FamilyGroup(calls=(CALLS,), thoughts=(THINK_TAGS,))
