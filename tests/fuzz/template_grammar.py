"""Chat templates that do what templates can do, with sizes that ask for too much."""

from collections.abc import Callable
from random import Random

FEW = ["0", "1", "2", "3", "7", "-1", "9", "60"]
MANY = ["99", "4000", "65537", "2**20", "2**22", "2**25"]
FAR_TOO_MANY = ["64000000", "99999999", "10**9"]
GREAT = [MANY, FAR_TOO_MANY]
TEXTS = ["'a'", "'f'", "'€'", "'💚'", "'ab '", "'x\\n'", "'\\t'", "'%'", "'{'", "''", "ns.text"]
LISTS = ["[1]", "['a', 'b']", "range(99)", "range(99999)", "[[1], [2]]", "{'a': 1}", "messages"]
LISTS += ["shared", "nested", "(1, 2)", "({'a': 1}, {'a': 2})", "ns.list"]

# N stands for a number, T for a text, L for a list, B for what is true or false.
NUMBER_FORMS = [
    *("(N + N)", "(N - N)", "(N * N)", "(N ** N)", "(N ** N)", "(N // N)", "(N % N)", "-N"),
    *("(N | round(N, 'ceil'))", "(N | round(N))", "(N | abs)", "(T | int(0, 16))", "(T | float)"),
    *("(T | length)", "(L | length)", "T.find(T)", "T.rfind(T)", "T.count(T)", "(L | sum)"),
    *("(L | max)", "L.index(N)", "(T | wordcount)"),
]
TEXT_FORMS = [
    *(
        "(T * N)",
        "(T * N)",
        "(T * N)",
        "(T + T)",
        "(T ~ L)",
        "(T ~ N)",
        "T[N:]",
        "T[N:]",
        "T[::-1]",
    ),
    *("('%Nd' % 1)", "('%.Nf' % 1.5)", "('%*d' % (N, 1))", "('%s%s' % (T, T))", "(T % ())"),
    *("'{:{}}'.format('a', N)", "'{:{}}'.format('a', '1500000000')", "'{0}{0}'.format(T)"),
    *("'{:>99999999}'.format(1)", "T.format(T)", "(T | center(N))", "T.ljust(N)", "T.zfill(N)"),
    *("(T | indent(N))", "(T | indent(T))", "T.replace(T, T)", "(T | replace(T, T))", "T.upper()"),
    *("(T | title)", "T.strip(T)", "(T | trim(T))", "T.join(L)", "(L | join(T))", "(L | string)"),
    *("(L | tojson)", "(L | tojson(indent=N))", "(T | tojson)", "(L | tojson(separators=(T, T)))"),
    *("(T | truncate(N))", "(T | wordwrap(N))", "T.expandtabs(N)", "(L | pprint)", "(T | reverse)"),
    *("T.encode().rjust(N)", "strftime_now('%Nd')", "T.removeprefix(T)", "(N | string)"),
]
LIST_FORMS = [
    *("(L * N)", "(L * N)", "(L + L)", "[L, L]", "L[N:]", "L[::-1]", "(L | list)", "(T | list)"),
    *("T.split()", "T.split(T)", "T.rsplit(T)", "T.splitlines()", "T.partition(T)", "[T] * 99"),
    *("T.rpartition(T)", "(L | sort)", "(L | unique | list)", "(L | batch(N) | list)", "[T, T]"),
    *("(L | batch(N, 0) | list)", "(L | slice(N) | list)", "(L | reverse | list)", "({T: N})"),
    *("(L | map('center', N) | list)", "(L | map(attribute=T, default={}) | list)", "(L | items)"),
    *(
        "(L | select('in', L) | list)",
        "(L | selectattr(T) | list)",
        "dict(L)",
        "(L | sum(start=L))",
    ),
    *("(range(0, 99999 * (2**61 - 1), 2**61 - 1) | unique | list)", "(L | dictsort)"),
]
TRUTH_FORMS = [
    "T in T",
    "T == T",
    "T < T",
    "L == L",
    "L < L",
    "L in L",
    "T in L",
    "N in L",
    "T is odd",
]
TRUTH_FORMS += ["N is divisibleby(N)", "L is eq(L)", "T.startswith(T)", "T is upper", "{}[L]"]
FORMS = {"N": NUMBER_FORMS, "T": TEXT_FORMS, "L": LIST_FORMS, "B": TRUTH_FORMS}
OPERATIONS = [form for forms in FORMS.values() for form in forms]

# What fits into the memory of a rendering; a few copies of it, or a list of its items, do not.
GREAT_VALUES = {
    "T": ["'x' * 2**25", "'a ' * 2**24", "'\\n' * 2**22", "'€' * 2**24", "'f' * 120000000"],
    "L": ["[0] * 2**19", "['a', 'b'] * 2**18", "[[1]] * 2**17", "range(99999)"],
}
KEPT = 300  # results
COPIES = [
    *("T[N:]", "T[::-1]", "T[:N]", "(T | list)", "T.split(T)", "T.split()", "T.splitlines()"),
    *("(T + T)", "(T ~ N)", "(T | reverse)", "T.strip(T)", "'{0}{0}'.format(T)", "(T | tojson)"),
    *("L[N:]", "L[::-1]", "(L | list)", "(L + L)", "(L * N)", "(L | batch(N) | list)"),
    *("(L | reverse | list)",),
]
OF_TEXTS = [form for form in OPERATIONS if "T" in form]  # of long lists, many take seconds

STATEMENTS = [
    "{{ T | length }}",
    "{{ T }}",
    "{{ L | length }}",
    "{{ N % 7 }}",
    "{{ B }}",
    "{% if B %}x{% endif %}",
    "{% set ns.text = T %}",
    "{% set ns.list = L %}",
    "{% for i in L %}{% set x = T %}{% endfor %}",
    "{% for i in range(60) %}{% set ns.list = ns.list + [T] %}{% endfor %}",
    "{% for i in range(9999) %}{% if B %}{% endif %}{% endfor %}",
    "{% set a = T %}{% set b = a[1:] %}{% set c = a[2:] %}{% set d = a[3:] %}{{ b == c }}",
]
# What single expressions cannot reach: parts that are shared, and deep nesting.
PRELUDE = (
    "{%- set ns = namespace(text='z', list=[], s=['a'], n=[]) %}"
    "{%- for i in range(DEPTH) %}{% set ns.s = (ns.s, ns.s) %}{% set ns.n = [ns.n] %}{% endfor %}"
    "{%- set shared, nested = [ns.s], ns.n %}"
)


def filled(rng: Random, form: str, depth: int) -> str:
    """Return a form with something in the place of each letter that stands for something."""
    return "".join(expression(rng, part, depth) if part in FORMS else part for part in form)


def expression(rng: Random, kind: str, depth: int) -> str:
    """Return an expression of that kind."""
    if kind == "B" or (depth > 0 and rng.random() < 0.6):
        return filled(rng, rng.choice(FORMS[kind]), depth - 1)
    plain: dict[str, Callable[[], str]] = {
        "N": lambda: rng.choice(rng.choice([FEW, *GREAT, FAR_TOO_MANY])),
        "T": lambda: (
            f"({rng.choice(TEXTS)} * {rng.choice(rng.choice([FEW, FEW, MANY, FAR_TOO_MANY]))})"
        ),
        "L": lambda: rng.choice(LISTS),
    }
    return plain[kind]()


def work_on_great_value(rng: Random) -> str:
    """Return a template with one operation on a great value, whose results may be kept."""
    form = rng.choice(rng.choice([COPIES, OF_TEXTS]))
    kind = "T" if "T" in form else "L"
    place = rng.choice([at for at, part in enumerate(form) if part == kind])
    before, after = (filled(rng, part, 0) for part in (form[:place], form[place + 1 :]))
    great = f"{{% set great = {rng.choice(GREAT_VALUES[kind])} %}}"
    result = f"{before}great{after}"
    if rng.random() < 0.5:
        return f"{great}{{{{ {result} is none }}}}"
    kept = f"{{% set ns.list = ns.list + [{result}] %}}"
    return f"{great}{{% for i in range({KEPT}) %}}{kept}{{% endfor %}}"


def greedy_template(rng: Random, base: bytes) -> bytes:
    """Return a template that asks for much in a few statements, or in a single operation.

    Of statements that are deep, most are refused for one of their first parts.
    """
    way = rng.random()
    if way < 0.6:
        body = work_on_great_value(rng)
    elif way < 0.95:
        body = f"{{{{ {filled(rng, rng.choice(OPERATIONS), 0)} is none }}}}"
    else:
        body = "".join(filled(rng, rng.choice(STATEMENTS), 3) for _ in range(rng.randint(1, 3)))
    return (PRELUDE.replace("DEPTH", rng.choice(["2", "2", "20", "40", "120"])) + body).encode()
