"""A template that would never end, or fill the memory, is refused in time, however it does so.

Nothing here looks at a clock: what is not bounded runs into the time limit of every test.
"""

import gc
import tracemalloc

import pytest
from playwright.sync_api import Browser

from py_runtime.chat import bounds
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.template import ChatTemplate
from tests.chat.chats import USER
from tests.runners import HEAP, started_page

pytestmark = [pytest.mark.thorough]

STEPS = "takes more than 524,288 steps"
WORK = "units of work"
MADE = "makes more than 134,217,728 bytes"
OUTPUT = "writes more than 4,194,304 characters"
BITS = "computes an integer of more than 4,096 bits"
DIGITS = "asks for more than 4,096 digits or characters of a number"
DEEP = "nests values more than 100 deep"
UNSUPPORTED = "which is not supported"
REPEATED = (
    "{%% set ns = namespace(x=%s) %%}{%% for i in range(%d) %%}{%% set ns.x = %s %%}{%% endfor %%}"
)
NUMBER = "makes a number of a text of more than 4,096 characters"
NODES = "has more than 10,000 names, values and tags"
LONG = "{% set long = 'a' * 2**22 %}"
SHARED = REPEATED % ("['a']", 40, "[ns.x, ns.x]")
EQUAL = SHARED + "{% set one = ns.x %}" + SHARED

LOOPS = {
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
    "a loop with a long body": (
        "{% for i in range(99999) %}" + "{% if i %}{% endif %}" * 3000 + "{% endfor %}",
        WORK,
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
    "filters that pass nothing": (
        "{% set many = range(99999) | list %}{% for i in range(99999) %}"
        "{{ many | reject | first }}{% endfor %}",
        WORK,
    ),
    "many arguments": (
        "{% for i in range(99999) %}{{ cycler(*range(99999)).current }}{% endfor %}",
        "",
    ),
    "long paths of attributes": (
        "{% set path = 'a.' * 2**20 %}{% set x = [{}] * 99 %}"
        "{{ x | map(attribute=path, default={}) | list | length }}",
        WORK,
    ),
}

INTEGERS = {
    "a large power": ("{{ 9 ** 99999999 }}", BITS),
    "a power of a power": ("{% set x = 3 ** (2 ** 26) %}{{ x % 7 }}", BITS),
    "squares": (REPEATED % ("3", 40, "ns.x * ns.x"), BITS),
    "sums": (REPEATED % ("2 ** 4090", 40, "ns.x + ns.x"), BITS),
    "a negative product": ("{{ (0 - 2 ** 4000) * 2 ** 4000 }}", BITS),
    "a long number in a text": ("{{ ('f' * 2 ** 22) | int(0, 16) % 7 }}", NUMBER),
    "a shorter one": ("{{ ('f' * 4000) | int(0, 16) % 7 }}", BITS),
    "a long fraction in a text": ("{{ ('1' * 2 ** 22) | float }}", NUMBER),
    "a long literal": ("{{ 0x" + "f" * 2000 + " }}", BITS),
    "a precision": ("{{ 1 | round(64000000, 'ceil') }}", DIGITS),
    "a negative precision": ("{{ 1 | round(-64000000) }}", DIGITS),
    "a rounded text": ("{{ 'x' | round(9, 'ceil') }}", "round takes a number, not a str"),
    "the precision of a format": ("{{ '%.99999999f' % 1 }}", DIGITS),
    "the precision of the other format": ("{{ '{:.99999999f}'.format(1.0) }}", DIGITS),
    "a remainder that formats": ("{{ '%999999999d' is odd }}", DIGITS),
    "a divisor that formats": ("{{ '%999999999d' is divisibleby(3) }}", DIGITS),
}

MEMORY = {
    "a long text": ("{{ 'x' * 999999999 }}", ""),
    "a long list": ("{{ [0] * 999999999 }}", MADE),
    "slices of a text": (
        "{% set x = 'a' * 2**25 %}" + "".join(f"{{% set a{i} = x[{i}:] %}}" for i in range(60)),
        MADE,
    ),
    "slices of a list": (
        "{% set x = [0] * 2**20 %}{% for i in range(99) %}{% set y = x[::-1] %}{% endfor %}",
        MADE,
    ),
    "a wide format": ("{{ '%999999999d' % 1 }}", DIGITS),
    "a width among the values": ("{{ '%*d' % (999999999, 1) }}", UNSUPPORTED),
    "a precision among the values": ("{{ '%.*f' % (999999999, 1) }}", UNSUPPORTED),
    "a width after a name": ("{{ '%(a(b))999999999d' % {'a(b)': 1} }}", DIGITS),
    "the other format": ("{{ '{:999999999}'.format(1) }}", DIGITS),
    "a field in a field": ("{{ '{:{}}'.format('a', '1500000000') }}", UNSUPPORTED),
    "a format by map": ("{{ '{a:{b}}'.format_map({'a': 1, 'b': 999999999}) }}", UNSUPPORTED),
    "the filter format": ("{{ '%999999999d' | format(1) }}", DIGITS),
    "a format by name": ("{{ ('%(a)s' * 10000) % {'a': 'x' * 100000} }}", MADE),
    "many fields": ("{{ ('{0}' * 10000).format('x' * 100000) }}", MADE),
    "center": ("{{ 'x' | center(999999999) }}", MADE),
    "center of each": ("{{ ['x'] | map('center', 999999999) | list }}", MADE),
    "its method": ("{{ 'x'.center(999999999) }}", MADE),
    "ljust": ("{{ 'x'.ljust(999999999) }}", MADE),
    "zfill": ("{{ 'x'.zfill(999999999) }}", MADE),
    "bytes": ("{{ 'x'.encode().rjust(999999999) }}", "uses 'encode' of a str, " + UNSUPPORTED),
    "bytes of an integer": ("{{ (1).to_bytes(999999999, 'big') }}", UNSUPPORTED),
    "expandtabs": ("{{ '\t'.expandtabs(999999999) }}", UNSUPPORTED),
    "translate": ("{{ 'x'.translate({120: 'y' * 99999}) }}", UNSUPPORTED),
    "indent": ("{{ ('x\n' * 10000) | indent(999999) }}", ""),
    "indent by a text": ("{{ ('x\n' * 10000) | indent('x' * 99999) }}", MADE),
    "indented lines": ("{{ ('\n' * 2**22) | indent(4) | length }}", MADE),
    "replace": ("{{ ('x' * 99999) | replace('x', 'y' * 9999) }}", MADE),
    "its method too": ("{{ ('x' * 99999).replace('', 'y' * 9999) }}", MADE),
    "join": ("{{ range(9999) | join('x' * 99999) }}", ""),
    "join of long texts": ("{{ (['x' * 9999] * 9999) | join }}", ""),
    "the method join": ("{{ ('x' * 9999).join('y' * 99999) }}", MADE),
    "a joined generator": ("{{ ('x' * 99999).join(range(9999) | map('string')) }}", ""),
    "batch": ("{{ [1] | batch(999999999, 0) | list }}", MADE),
    "batches": ("{{ ('x' * 2**24) | batch(99) | list | length }}", ""),
    "slice": ("{{ [1] | slice(999999999) | list }}", MADE),
    "list": ("{{ ('x' * 2**24) | list | length }}", ""),
    "a list of rare characters": ("{{ ('€' * 2**21) | list | length }}", MADE),
    "split": ("{{ ('x ' * 2**21).split() | length }}", MADE),
    "split at each": ("{{ ('x' * 2**21).split('x') | length }}", MADE),
    "split from the end": ("{{ (' x' * 2**21).rsplit() | length }}", MADE),
    "splitlines": ("{{ ('\r' * 2**21).splitlines() | length }}", MADE),
    "wide characters": ("{{ (('x' * 2**25) ~ '💚') | length }}", MADE),
    "capitals": ("{{ ('ΐ' * 2**24).upper() | length }}", MADE),
    "a title": ("{{ ('x-' * 2**20) | title | length }}", MADE),
    "sum of lists": ("{{ ([[0] * 9999] * 9999) | sum(start=[]) | length }}", "sum takes numbers"),
    "sum of parts": ("{{ [{'a': [0]}] | sum('a', []) }}", "sum takes numbers"),
    "capitals of shared keys": ("{{ (['X' * 2**20] * 999) | sort | length }}", ""),
    "an object of long pairs": ("{{ dict(['x' * 2**26]) }}", "dict takes an object, or pairs"),
    "an indent of JSON": ("{{ [1] | tojson(indent=10**9) }}", DIGITS),
    "an indent of JSON by a text": ("{{ [1] | tojson(indent='x' * 2**20) }}", DIGITS),
    "indents of JSON": (
        REPEATED % ("[0]", 90, "[ns.x]") + "{{ ([ns.x] * 999) | tojson(indent=4000) }}",
        MADE,
    ),
    "separators of JSON": (
        "{{ ([0] * 9999) | tojson(separators=('x' * 2**20, ':')) | length }}",
        MADE,
    ),
    "a date": ("{{ strftime_now('%999999999d') }}", UNSUPPORTED),
    "a date with a flag": ("{{ strftime_now('%-_999999999d') }}", UNSUPPORTED),
    "doubled texts": (REPEATED % ("'x'", 90, "ns.x ~ ns.x"), MADE),
    "doubled sums": (REPEATED % ("'x'", 90, "ns.x + ns.x"), MADE),
    "doubled blocks": (
        "{% set ns = namespace(x='x') %}{% for i in range(90) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}"
        "{% endset %}{% endfor %}",
        OUTPUT,
    ),
    "many long texts": (
        "{% set long = 'x' * 60000000 %}{% set more = long ~ 'x' * 60000000 %}",
        MADE,
    ),
    "much output": ("{% for i in range(99999) %}" + "x" * 100 + "{% endfor %}", OUTPUT),
    "one long output": ("{{ 'x' * 5000000 }}", OUTPUT),
    "a namespace in itself": (
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}{{ 'x' * 999999999 }}",
        "",
    ),
}

WORKLOADS = {
    "wordwrap": ("{{ (('a' * 2**21) | wordwrap(1)) | length }}", "No filter named 'wordwrap'"),
    "wordwrap of each": ("{{ ['x'] | map('wordwrap', 1) | list }}", "No filter named 'wordwrap'"),
    "lists of lists": (SHARED + "{{ ns.x }}", WORK),
    "tuples of tuples": (REPEATED % ("()", 40, "(ns.x, ns.x)") + "{{ ns.x | tojson }}", WORK),
    "objects of objects": (
        REPEATED % ("{}", 40, "{'a': ns.x, 'b': ns.x}") + "{{ ns.x ~ '' }}",
        WORK,
    ),
    "equal lists of lists": (EQUAL + "{{ one == ns.x }}", WORK),
    "ordered lists of lists": (EQUAL + "{{ one < ns.x }}", WORK),
    "a list in a list": (EQUAL + "{{ one in [ns.x] }}", WORK),
    "equal by a test": (EQUAL + "{{ one is eq(ns.x) }}", WORK),
    "the index of a list": (EQUAL + "{{ [one].index(ns.x) }}", WORK),
    "changed": (
        EQUAL + "{% for x in [one, ns.x] %}{{ loop.changed(x) }}{% endfor %}",
        WORK,
    ),
    "a key of tuples": (REPEATED % ("()", 40, "(ns.x, ns.x)") + "{{ {}[ns.x] }}", WORK),
    "a key that is looked up": (
        REPEATED % ("()", 40, "(ns.x, ns.x)") + "{{ {}.get(ns.x) }}",
        WORK,
    ),
    "a key that is none": (REPEATED % ("()", 40, "(ns.x, ns.x)") + "{{ {ns.x: 1} }}", WORK),
    "an index that is none": (
        REPEATED % ("()", 9, "(ns.x, ns.x)") + "{{ [][ns.x].missing }}",
        "'list object' has no attribute 'tuple'",
    ),
    "unique tuples": (REPEATED % ("()", 40, "(ns.x, ns.x)") + "{{ [ns.x] | unique | list }}", WORK),
    "integers with the same hash": (
        "{% set p = 2**61 - 1 %}{{ range(0, 99999 * p, p) | unique | list | length }}",
        WORK,
    ),
    "keys with the same hash": ("{{ {2**61: 1} }}", "a key of the type int, " + UNSUPPORTED),
    "lists in lists": (REPEATED % ("[]", 999, "[ns.x]") + "{{ ns.x }}", DEEP),
    "a refusal that is long": (SHARED + "{{ raise_exception(ns.x) }}", WORK),
    "a search from the end": (LONG + "{{ long.rfind('ab' ~ long[:2**20]) }}", WORK),
    "a split from the end": (LONG + "{{ long.rsplit('ab' ~ long[:2**20], 1) | length }}", WORK),
    "a partition from the end": (LONG + "{{ long.rpartition('ab' ~ long[:2**20]) }}", WORK),
    "a strip": (LONG + "{{ long.strip('b' * 2**16 ~ 'a') | length }}", WORK),
    "the filter trim": (LONG + "{{ long | trim('b' * 2**16 ~ 'a') | length }}", WORK),
    "many searches": (
        LONG + "{% for i in range(99999) %}{% if 'b' in long %}{% endif %}{% endfor %}",
        WORK,
    ),
    "many counts": (
        LONG + "{% for i in range(99999) %}{% set x = long.count('b') %}{% endfor %}",
        WORK,
    ),
    "many equal texts": (
        LONG + "{% set b = 'a' ~ long[1:] %}{% for i in range(99999) %}"
        "{% if long == b %}{% endif %}{% endfor %}",
        WORK,
    ),
    "sorted long texts": (
        "{% set x = range(2000) | map('string') | map('center', 40000) | list %}"
        "{% for i in range(99) %}{% set y = x | sort(case_sensitive=true) %}{% endfor %}",
        "",
    ),
    "many texts in a list": (
        LONG + "{% set many = [long] * 2**16 %}{{ ('b' ~ long[1:]) in many }}",
        WORK,
    ),
    "a set of keys": ("{{ {'a': 1}.keys() - range(9) }}", "dict_keys of an object, " + UNSUPPORTED),
    "a text in a range": (
        "{% for i in range(9999) %}{{ 'x' in range(99999) }}{% endfor %}",
        WORK,
    ),
}

SOURCES = {
    "a long source": ("x" * 300_000, "has 300000 characters; at most 262144 are read"),
    "nested brackets": ("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", "nested too deeply"),
    "nested loops": ("{% for i in x %}" * 30 + "{% endfor %}" * 30, "nested too deeply"),
    "a long literal in figures": ("{{ " + "1" * 5000 + " }}", ""),
    "many names": ("{{ a }}" * 30_000, NODES),
    "a long chain": ("{{ a" + " ~ a" * 30_000 + " }}", NODES),
    "include": ("{% include 'x' %}", "uses include in line 1, " + UNSUPPORTED),
    "import": ("\n{% import 'x' as y %}", "uses import in line 2, " + UNSUPPORTED),
    "extends": ("{% extends 'x' %}", "uses extends in line 1, " + UNSUPPORTED),
    "block": ("{% block x %}{{ self.x() }}{% endblock %}", "uses block in line 1, " + UNSUPPORTED),
    "a slice among indices": ("{{ x[1:2, 3] }}", ""),
}

RENDER = """
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.template import ChatTemplate
try:
    told = str(len(ChatTemplate({source!r}).render({messages!r})))
except ChatTemplateError as error:
    told = str(error)
told
"""
EVIL = LOOPS | INTEGERS | MEMORY | WORKLOADS | SOURCES


@pytest.fixture(autouse=True)
def _any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the counts end a rendering, however slow the machine is."""
    monkeypatch.setattr(bounds, "MAX_SECONDS", 500.0)


@pytest.mark.parametrize("name", EVIL)
def test_an_evil_template_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates that work for too long do so within a sixteenth of the bound, to save time."""
    source, fault = EVIL[name]
    if fault == WORK:
        monkeypatch.setattr(bounds, "MAX_WORK", bounds.MAX_WORK // 16)
    with pytest.raises(ChatTemplateError) as caught:
        ChatTemplate(source).render([USER])
    assert str(caught.value).startswith("the chat template ")
    assert fault in str(caught.value)


LEFT = {
    **{name: MEMORY[name][0] for name in ("slices of a text", "many long texts", "doubled sums")},
    "a refusal": "{% set x = 'a' * 2**26 %}{{ raise_exception('no') }}",
    "a success": "{% macro m() %}{{ x }}{% endmacro %}{% set x = 'a' * 2**26 %}{{ 'a' if m }}",
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_nothing_of_a_rendering_stays(source: str) -> None:
    """Nothing waits for a collection either, which may come many renderings later."""
    template, kept = ChatTemplate(source), []
    ChatTemplate("{{ 1 }}").render([USER])  # what is imported for the first one
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        template.render([USER])
    except ChatTemplateError as error:
        kept.append(error)
    finally:
        held, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        gc.enable()
    assert held < 2 << 20
    assert bounds.MAX_MADE // 8 < most < bounds.MAX_MADE * 5 // 4


@pytest.mark.browser
def test_the_page_grows_by_no_more_than_the_bound(shared_browser: Browser, site_url: str) -> None:
    """Its heap never shrinks, and holds a result beside what that was made of."""
    with started_page(shared_browser, site_url) as in_page:
        before = in_page.python(HEAP)
        for name, (source, _) in MEMORY.items():
            told = in_page.python(RENDER.format(source=source, messages=[USER]))
            assert told.startswith("the chat template "), name
        assert in_page.python(HEAP) - before <= 2 * bounds.MAX_MADE


@pytest.mark.parametrize("fault", [RecursionError, MemoryError, SyntaxError])
def test_whatever_python_says_of_code_that_is_too_deep(
    fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of Python decides which of them it is."""

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
