"""The sandbox chat templates run in. Importing this imports jinja2."""

import json
from datetime import datetime
from typing import Any

from jinja2 import Template, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from py_runtime.tokens.errors import ChatTemplateError

# Nothing is escaped in plain text. The page has no markupsafe for them either.
HTML_FILTERS = ("e", "escape", "forceescape", "striptags", "urlize", "xmlattr")


def compile_template(source: str) -> Template:
    """ChatTemplateError, with the line, where it does not parse."""
    try:
        return make_environment().from_string(source)
    except TemplateSyntaxError as error:
        fault = f"the chat template is broken in line {error.lineno}: {error.message}"
        raise ChatTemplateError(fault) from error


def make_environment() -> ImmutableSandboxedEnvironment:
    """As transformers sets jinja2 up, less what writes HTML."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, LoopControlExtension]
    )
    for name in HTML_FILTERS:
        del environment.filters[name]
    environment.filters |= {"tojson": to_json, "safe": str}
    del environment.globals["lipsum"]
    environment.globals |= {
        "dict": make_dict,
        "namespace": GuardedNamespace,
        "raise_exception": raise_exception,
        "strftime_now": strftime_now,
    }
    return environment


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """jinja2's own escapes characters for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def make_dict(*items: Any, **named: Any) -> dict[str, Any]:
    """A function rather than the type, whose methods a template has no use for."""
    return dict(*items, **named)


def strftime_now(layout: str) -> str:
    """Templates put today's date into the system prompt with it."""
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


def refuse_private(name: str) -> None:
    """SecurityError for names that could reach Python's own."""
    if name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template cannot hold {name!r}")
