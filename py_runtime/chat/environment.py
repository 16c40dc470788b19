"""The sandbox chat templates run in. Importing this imports jinja2."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import wraps
from types import BuiltinMethodType
from typing import Any

from jinja2 import TemplateSyntaxError, nodes, pass_environment
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from py_runtime.chat.bounds import (
    MAX_SOURCE,
    RenderingMeter,
    check_named,
    check_operator,
    counted,
    text_size,
    weight,
)
from py_runtime.chat.errors import ChatTemplateError

# Nothing is escaped in plain text. The page has no markupsafe for them either.
HTML_FILTERS = ("e", "escape", "forceescape", "striptags", "urlize", "xmlattr")
FOR_PEOPLE = ("pprint",)  # its work grows faster than what it prints
METHODS_OF = (str, bytes, int)


Render = Callable[[dict[str, Any]], str]


def compile_template(source: str) -> Render:
    """ChatTemplateError, with the line, where it does not parse."""
    if len(source) > MAX_SOURCE:
        raise ChatTemplateError(
            f"the chat template has {len(source)} characters; at most {MAX_SOURCE} are read"
        )
    environment = make_environment()
    try:
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        fault = f"the chat template is broken in line {error.lineno}: {error.message}"
        raise ChatTemplateError(fault) from error
    except (RecursionError, MemoryError, SyntaxError):  # the last two are Python's own, of its code
        raise ChatTemplateError("the chat template is nested too deeply") from None

    def render(variables: dict[str, Any]) -> str:
        environment.meter = RenderingMeter()
        return template.render(**variables)

    return render


class GuardedEnvironment(ImmutableSandboxedEnvironment):
    """Every step of a template goes through here, and its meter counts it."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, optimized=False)  # nothing is computed but by rendering
        self.meter = RenderingMeter()

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed = super()._parse(source, name, filename)
        CountedSteps().visit(parsed)
        return parsed

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Named as in jinja2: a template may pass any other name."""
        owner = getattr(__obj, "__self__", None)
        if owner is __self:
            return __obj(*args)  # one of the four below
        __self.meter.step()
        if isinstance(__obj, BuiltinMethodType) and isinstance(owner, METHODS_OF):
            args = tuple(map(__self.listed, args))
            check_named(__self.meter, __obj.__name__, owner, [*args, *kwargs.values()])
        return __self.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        check_operator(self.meter, operator, left, right)
        return self.made(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        run = super().wrap_str_format(value)
        if run is None:
            return None

        def format_counted(*args: Any, **named: Any) -> str:
            check_named(self.meter, "format", value.__self__, [*args, *named.values()])
            return run(*args, **named)

        return format_counted

    def guarded(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that counts."""
        place = 1 if hasattr(run, "jinja_pass_arg") else 0  # of what it is applied to

        @wraps(run)
        def apply(*args: Any, **named: Any) -> Any:
            taken, subject, given = args[:place], self.listed(args[place]), args[place + 1 :]
            check_named(self.meter, name, subject, [*given, *named.values()])
            return self.made(run(*taken, subject, *given, **named))

        return apply

    def listed(self, value: Any) -> Any:
        return list(value) if isinstance(value, Iterator) else value

    # What CountedSteps calls -------------------------------------------------------------------

    def turn(self) -> bool:
        self.meter.step()
        return True

    def made(self, value: Any) -> Any:
        self.meter.step()
        if isinstance(value, Iterator):
            return counted(value, self.meter)
        self.meter.make(weight(value))
        return value

    def shown(self, value: Any) -> str:
        self.meter.step()
        if not isinstance(value, str):
            self.meter.expect(text_size(value))
        text = str(value)
        self.meter.show(len(text))
        return text

    def joined(self, *parts: Any) -> str:
        self.meter.expect(sum(map(text_size, parts)))
        text: str = self.made("".join(map(str, parts)))
        return text


class CountedSteps(NodeTransformer):
    """Has a template tell its environment of every turn of a loop and everything it makes."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_own("turn"), lineno=node.lineno))
        if node.test is not None:
            node.test = nodes.And(_own("turn"), node.test, lineno=node.lineno)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [
            _own("shown", nodes.Const(part.data) if isinstance(part, nodes.TemplateData) else part)
            for part in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _own("joined", *node.nodes)

    def _wrapped(self, node: nodes.Node) -> nodes.Node:
        self.generic_visit(node)
        return node if getattr(node, "ctx", "load") == "store" else _own("made", node)

    visit_List = visit_Tuple = visit_Dict = visit_Compare = _wrapped


def _own(name: str, *args: Any) -> nodes.Call:
    lineno = args[0].lineno if args else 1
    called = nodes.EnvironmentAttribute(name, lineno=lineno)
    return nodes.Call(called, list(args), [], None, None, lineno=lineno)


def make_environment() -> GuardedEnvironment:
    """As transformers sets jinja2 up, less what writes HTML, with everything counted."""
    environment = GuardedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, LoopControlExtension]
    )
    for name in (*HTML_FILTERS, *FOR_PEOPLE):
        del environment.filters[name]
    environment.filters |= {"tojson": to_json, "safe": str}
    for name, run in environment.filters.items():
        environment.filters[name] = environment.guarded(name, run)
    del environment.globals["lipsum"]
    environment.globals |= {
        "dict": make_dict,
        "namespace": GuardedNamespace,
        "raise_exception": raise_exception,
        "strftime_now": strftime_now,
    }
    return environment


@pass_environment
def to_json(
    environment: GuardedEnvironment,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """jinja2's own escapes characters for HTML. It is made piece by piece: indents add up."""
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    pieces: list[str] = []
    for piece in encoder.iterencode(value):
        environment.meter.make(len(piece))
        pieces.append(piece)
    return "".join(pieces)


def make_dict(*items: Any, **named: Any) -> dict[str, Any]:
    """A function rather than the type, whose methods a template has no use for."""
    return dict(*items, **named)


@pass_environment
def strftime_now(environment: GuardedEnvironment, layout: str) -> str:
    """Templates put today's date into the system prompt with it."""
    check_named(environment.meter, "format", layout, [])  # "%99999d" is wide in some systems
    return datetime.now().strftime(layout)


def raise_exception(message: str) -> None:
    """For templates, to refuse messages that the model was not trained on."""
    raise ChatTemplateError(f"the chat template refuses these messages: {message}")


class GenerationTag(Extension):
    """{% generation %} marks what the model itself says, for training; it prints its content."""

    tags = {"generation"}  # noqa: RUF012 (so jinja2 declares it)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class GuardedNamespace(Namespace):
    """namespace() that keeps a template away from Python's own attributes."""

    def __init__(*args: Any, **named: Any) -> None:
        self, *rest = args  # so that a template may store the name self
        attributes = dict(*rest, **named)
        for name in attributes:
            refuse_private(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        refuse_private(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # not what it holds, which may be itself


def refuse_private(name: str) -> None:
    """SecurityError for names that could reach Python's own."""
    if name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template cannot hold {name!r}")
