"""A template that would never end, or fill the memory, is refused in time, however it does so.

Nothing here looks at a clock: what is not bounded runs into the time limit of every test.
"""

import pytest

from py_runtime.chat import bounds
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.template import ChatTemplate
from tests.chat.chats import USER

pytestmark = pytest.mark.long

STEPS = "takes more than 524,288 steps"
MADE = "makes more than 67,108,864 characters"
OUTPUT = "writes more than 4,194,304 characters"
LONG = "{% set long = 'x' * 60000000 %}"
TWICE = (
    "{%% set ns = namespace(x=%s) %%}{%% for i in range(90) %%}{%% set ns.x = %s %%}{%% endfor %%}"
)

EVIL = {
    "loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        STEPS,
    ),
    "loops that pass nothing": (
        "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
        STEPS,
    ),
    "a loop in itself": (
        "{% for i in [1] recursive %}{{ loop([1, 2]) }}{{ loop([1, 2]) }}{% endfor %}",
        "",
    ),
    "macros": (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) ~ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        STEPS,
    ),
    "macros without end": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", ""),
    "lazy filters": (
        "{% for i in range(99999) %}{{ range(99999) | map('string') | list | length }}{% endfor %}",
        "",
    ),
    "a long text": ("{{ 'x' * 999999999 }}", MADE),
    "a long list": ("{{ [0] * 999999999 }}", MADE),
    "a long power": ("{{ 9 ** 999999999 }}", MADE),
    "a long format": ("{{ '%999999999d' % 1 }}", MADE),
    "a wide format": ("{{ '%*d' % (999999999, 1) }}", MADE),
    "the other format": ("{{ '{:999999999}'.format(1) }}", MADE),
    "a wide other format": ("{{ '{:{}}'.format(1, 999999999) }}", MADE),
    "the filter format": ("{{ '%999999999d' | format(1) }}", MADE),
    "a format by name": ("{{ ('%(a)s' * 10000) % {'a': 'x' * 100000} }}", MADE),
    "center": ("{{ 'x' | center(999999999) }}", MADE),
    "center of each": ("{{ ['x'] | map('center', 999999999) | list }}", MADE),
    "its method": ("{{ 'x'.center(999999999) }}", MADE),
    "ljust": ("{{ 'x'.ljust(width=999999999) if false else 'x'.ljust(999999999) }}", MADE),
    "zfill": ("{{ 'x'.zfill(999999999) }}", MADE),
    "bytes": ("{{ 'x'.encode().rjust(999999999) }}", MADE),
    "expandtabs": ("{{ '\t'.expandtabs(999999999) }}", MADE),
    "indent": ("{{ ('x\n' * 10000) | indent(999999) }}", MADE),
    "indent by a text": ("{{ ('x\n' * 10000) | indent('x' * 99999) }}", MADE),
    "replace": ("{{ ('x' * 99999) | replace('x', 'y' * 99999) }}", MADE),
    "its method too": ("{{ ('x' * 99999).replace('', 'y' * 99999) }}", MADE),
    "join": ("{{ range(99999) | join('x' * 99999) }}", MADE),
    "join of long texts": ("{{ (['x' * 99999] * 99999) | join }}", MADE),
    "the method join": ("{{ ('x' * 99999).join('y' * 99999) }}", MADE),
    "a joined generator": ("{{ ('x' * 99999).join(range(99999) | map('string')) }}", MADE),
    "batch": ("{{ [1] | batch(999999999, 0) | list }}", MADE),
    "slice": ("{{ [1] | slice(999999999) | list }}", MADE),
    "round": ("{{ 1.5 | round(999999999, 'ceil') }}", MADE),
    "sum of lists": ("{{ ([[0] * 9999] * 9999) | sum(start=[]) | length }}", MADE),
    "wordwrap": ("{{ ('x ' * 99999) | wordwrap(1, wrapstring='y' * 99999) }}", MADE),
    "indents of JSON": (
        TWICE % ("[0]", "[ns.x]") + "{{ ([ns.x] * 99) | tojson(indent=99999) }}",
        MADE,
    ),
    "translate": (
        "{{ 'x'.translate({120: 'y' * 99999}) }}",
        "uses translate, which is not supported",
    ),
    "to_bytes": ("{{ (1).to_bytes(999999999, 'big') }}", "uses to_bytes, which is not supported"),
    "a date": ("{{ strftime_now('%999999999d') }}", MADE),
    "doubled texts": (TWICE % ("'x'", "ns.x ~ ns.x"), MADE),
    "doubled sums": (TWICE % ("'x'", "ns.x + ns.x"), MADE),
    "doubled blocks": (
        "{% set ns = namespace(x='x') %}{% for i in range(90) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}"
        "{% endset %}{% endfor %}",
        OUTPUT,
    ),
    "lists of lists": (TWICE % ("[]", "[ns.x, ns.x]") + "{{ ns.x }}", MADE),
    "tuples of tuples": (TWICE % ("()", "(ns.x, ns.x)") + "{{ ns.x | tojson }}", MADE),
    "objects of objects": (TWICE % ("{}", "{'a': ns.x, 'b': ns.x}") + "{{ ns.x ~ '' }}", MADE),
    "many long texts": (LONG + "{% set more = long ~ 'x' * 60000000 %}", MADE),
    "much output": ("{% for i in range(99999) %}" + "x" * 100 + "{% endfor %}", OUTPUT),
    "one long output": ("{{ 'x' * 5000000 }}", OUTPUT),
    "a namespace in itself": (
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}{{ 'x' * 999999999 }}",
        MADE,
    ),
    "a long source": ("x" * 300_000, "has 300000 characters; at most 262144 are read"),
    "nested brackets": ("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", "nested too deeply"),
    "nested loops": ("{% for i in x %}" * 30 + "{% endfor %}" * 30, "nested too deeply"),
}


@pytest.fixture(autouse=True)
def _any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow it is, the steps are what ends a loop."""
    monkeypatch.setattr(bounds, "MAX_SECONDS", 500.0)


@pytest.mark.parametrize("name", EVIL)
def test_an_evil_template_is_refused(name: str) -> None:
    source, fault = EVIL[name]
    with pytest.raises(ChatTemplateError) as caught:
        ChatTemplate(source).render([USER])
    assert str(caught.value).startswith("the chat template ")
    assert fault in str(caught.value)


@pytest.mark.parametrize("fault", [RecursionError, MemoryError, SyntaxError])
def test_whatever_python_says_of_code_that_is_too_deep(
    fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of them it is depends on its version."""

    def refuse(*_: object) -> None:
        raise fault

    monkeypatch.setattr("jinja2.Environment.compile", refuse)
    with pytest.raises(ChatTemplateError, match="the chat template is nested too deeply"):
        ChatTemplate("{{ 1 }}").render([USER])


def test_time_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate("{% for i in range(9) %}x{% endfor %}")
    assert template.render([USER]) == "x" * 9
    monkeypatch.setattr(bounds, "MAX_SECONDS", -1.0)
    with pytest.raises(ChatTemplateError, match="takes longer than"):
        template.render([USER])


def test_each_rendering_has_its_own_bounds() -> None:
    template = ChatTemplate("{% for i in range(99999) %}{{ 'x' }}{{ 'y' }}{% endfor %}")
    for _ in range(3):
        assert len(template.render([USER])) == 2 * 99_999


def test_a_long_chat_is_within_them() -> None:
    template = ChatTemplate(
        "{% for message in messages %}<|{{ message.role }}|>{{ message['content'] | trim }}"
        "{% if not loop.last and messages | length > 1 %}{{ '\\n' ~ loop.index }}{% endif %}"
        "{% endfor %}"
    )
    chat = [{"role": "user", "content": "many words " * 100}] * 1000
    assert len(template.render(chat)) > 1_000_000


def test_what_is_just_within_them() -> None:
    assert len(ChatTemplate("x" * bounds.MAX_SOURCE).render([USER])) == bounds.MAX_SOURCE
    assert ChatTemplate("{{ ([1] * 30000) | sum }}").render([USER]) == "30000"
    assert ChatTemplate("{{ ([1] * 30000) | sum(start=2) }}").render([USER]) == "30002"


def test_what_was_made_before_counts() -> None:
    meter = bounds.RenderingMeter()
    meter.make(bounds.MAX_MADE - 10)
    meter.expect(10)
    with pytest.raises(ChatTemplateError, match="makes more than"):
        meter.expect(11)
