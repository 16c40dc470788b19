"""The sandbox chat templates run in: a closed world. Importing this imports jinja2.

A template can use the syntax, filters, tests, methods and functions that are listed, and nothing
else. Each of them is charged to the rendering's meter before it runs (see bounds.py).
"""

import gc
import re
from collections.abc import Callable
from datetime import datetime
from operator import contains, eq, ge, gt, le, lt, ne
from traceback import clear_frames
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn

from jinja2 import TemplateSyntaxError, Undefined, nodes, pass_environment
from jinja2.exceptions import SecurityError
from jinja2.ext import LoopControlExtension
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import SandboxedFormatter
from jinja2.utils import Cycler, Joiner, Namespace

from py_runtime.chat.bounds import (
    ACCESS,
    ITEM,
    MAX_SOURCE,
    POINTER,
    RenderingMeter,
    listed,
    shorten,
    spelled_bytes,
    unsupported,
)
from py_runtime.chat.costs import (
    check_comparison,
    check_equality,
    check_key,
    check_new_keys,
    check_operator,
    check_text,
)
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.filters import as_text, guarded_filters, guarded_tests
from py_runtime.chat.metered import MeteredEnvironment
from py_runtime.chat.methods import METHODS, checked_arguments
from py_runtime.chat.syntax import CheckedSyntax, GenerationTag, GuardedCodeGenerator

Render = Callable[[dict[str, Any]], str]

MUCH = 16 << 20  # bytes that a rendering made, of which nothing is to stay
NODE_WORK = 32  # units of work for evaluating a node of the syntax tree
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **{"eq": eq, "ne": ne, "lt": lt, "lteq": le, "gt": gt, "gteq": ge},
    "in": lambda item, container: contains(container, item),
    "notin": lambda item, container: not contains(container, item),
}
LOOP_ATTRIBUTES = ("cycle", "changed", "depth", "depth0", "first", "index", "index0", "last")
ATTRIBUTES: dict[type, frozenset[str]] = {
    LoopContext: frozenset(
        (*LOOP_ATTRIBUTES, "length", "nextitem", "previtem", "revindex", "revindex0")
    ),
    Cycler: frozenset(("current", "next", "reset")),
    **{kind: frozenset(checks) for kind, checks in METHODS.items()},
}
_DIRECTIVE_WIDTH = re.compile(r"%[^A-Za-z%]*[0-9]")


def compile_template(source: str) -> Render:
    """Return what renders a template; ChatTemplateError, with the line, where it does not parse."""
    if len(source) > MAX_SOURCE:
        raise ChatTemplateError(
            f"the chat template has {len(source)} characters; at most {MAX_SOURCE} are read"
        )
    environment = GuardedEnvironment()
    try:
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        fault = f"the chat template is broken in line {error.lineno}: {error.message}"
        raise ChatTemplateError(shorten(fault)) from error
    except (RecursionError, MemoryError, SyntaxError):  # the last two are Python's own, of its code
        raise ChatTemplateError("the chat template is nested too deeply") from None

    def render(variables: dict[str, Any]) -> str:
        environment.meter = RenderingMeter()
        try:
            return template.render(**variables)
        except BaseException as error:
            clear_frames(error.__traceback__)  # of what was made, however long the error is kept
            raise
        finally:
            if environment.meter.bytes_made > MUCH:  # macros and contexts hold each other
                gc.collect()

    return render


class GuardedEnvironment(MeteredEnvironment):
    """jinja2, set up as transformers does, less what no chat template needs; all of it metered."""

    intercepted_binops = frozenset(MeteredEnvironment.default_binop_table)
    code_generator_class = GuardedCodeGenerator

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationTag, LoopControlExtension],
            optimized=False,  # nothing is computed but by rendering
        )
        self.meter = RenderingMeter()
        self.filters = guarded_filters(self)
        self.tests = guarded_tests(self)
        self.globals = {
            "cycler": Cycler,
            "dict": make_dict,
            "joiner": Joiner,
            "namespace": make_namespace,
            "raise_exception": raise_exception,
            "range": self.globals["range"],
            "strftime_now": strftime_now,
        }
        self._functions = frozenset(self.globals.values())

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed = super()._parse(source, name, filename)
        CheckedSyntax().visit(parsed)
        return parsed

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Raise the error as it is: jinja2 writes other frames, which hold what was made."""
        raise

    # Attributes, items and calls ------------------------------------------------------------------

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return obj.attribute, or else obj["attribute"]."""
        self.meter.work(ACCESS)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return obj[argument]."""
        self.meter.work(ACCESS)
        check_key(self.meter, argument)
        found = super().getitem(obj, argument)
        if isinstance(found, Undefined) and isinstance(argument, list | tuple | dict):
            return self.undefined(obj=obj, name=type(argument).__name__)  # not as long as it may be
        return found

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Tell whether a template may have an attribute."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        return isinstance(obj, Namespace) or attr in ATTRIBUTES.get(type(obj), ())

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Return what stands for an attribute that a template may not have."""
        if not super().is_safe_attribute(obj, attribute, None):
            return super().unsafe_undefined(obj, attribute)
        what = f"the chat template uses {attribute!r} of a {type(obj).__name__}"
        return self.undefined(
            f"{what}, which is not supported", name=attribute, obj=obj, exc=SecurityError
        )

    def wrap_str_format(self, value: Any) -> None:
        """Leave str.format as it is: call() sees to it, and nothing else calls anything."""

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls. Named as in jinja2: a template may pass any other name."""
        meter = __self.meter
        meter.step()
        meter.work(ITEM * (len(args) + len(kwargs)))
        owner = getattr(__obj, "__self__", None)
        if isinstance(__obj, BuiltinMethodType) and type(owner) in METHODS:
            named = {name: value for name, value in kwargs.items() if name not in HIDDEN_ARGUMENTS}
            given = checked_arguments(meter, __obj, args, named)
            if isinstance(owner, str) and __obj.__name__ == "format":
                return __self.charged(SandboxedFormatter(__self).vformat(owner, given, named))
            found = __obj(*given, **named)
            return found if isinstance(owner, dict) else __self.charged(found)
        if isinstance(owner, LoopContext) and __obj.__name__ == "changed":
            check_equality(meter, owner._last_changed_value, args)
        if __self._may_be_called(__obj, owner):
            return __self.charged(super().call(__context, __obj, *args, **kwargs))
        raise unsupported(f"a call of a {type(__obj).__name__}")

    def _may_be_called(self, obj: Any, owner: Any) -> bool:
        if not callable(obj) or isinstance(obj, Undefined):
            return True  # it raises what says so
        if isinstance(obj, MethodType):
            return isinstance(owner, LoopContext | Cycler)
        return isinstance(obj, Macro | LoopContext | Joiner) or obj in self._functions

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute with an operator."""
        self.meter.step()
        check_operator(self.meter, operator, left, right)
        return self.charged(super().call_binop(context, operator, left, right))

    # What templates are compiled to (see syntax.py) -----------------------------------------------

    def begin_body(self, nodes: int) -> bool:
        """Charge for a turn of a loop or a call of a macro, which has so many nodes."""
        self.meter.step()
        self.meter.work(NODE_WORK * nodes)
        return True

    def write(self, value: Any) -> str:
        """Return a value as it is written."""
        self.meter.step()
        text = as_text(self.meter, value)
        self.meter.show(len(text))
        return text

    def concatenate(self, *parts: Any) -> str:
        """Compute a ~ b."""
        self.meter.step()
        size = sum(spelled_bytes(self.meter, part) for part in parts)
        self.meter.work(size)
        self.meter.expect(4 * size)
        text: str = self.charged("".join(map(str, parts)))
        return text

    def compare(self, left: Any, *rest: Any) -> Any:
        """Compute a < b, or a < b < c."""
        result: Any = True
        for operator, right in zip(rest[::2], rest[1::2], strict=True):
            self.meter.step()
            right = listed(self.meter, right) if operator in ("in", "notin") else right
            check_comparison(self.meter, operator, left, right)
            result = COMPARISONS[operator](left, right)
            if not result:
                break
            left = right
        return result

    def slice_value(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """Compute value[start:stop:step]."""
        self.meter.step()
        part = slice(start, stop, step)
        if isinstance(value, str):
            check_text(self.meter, len(range(*part.indices(len(value)))), value)
        elif isinstance(value, list | tuple):
            length = len(range(*part.indices(len(value))))
            self.meter.work(length)
            self.meter.expect(POINTER * length)
        elif not isinstance(value, range | Undefined):
            raise TypeError(f"a {type(value).__name__} has no slices")
        return self.charged(value[part])

    def make_object(self, *parts: Any) -> dict[Any, Any]:
        """Make {key: value, ...}."""
        self.meter.step()
        check_new_keys(self.meter, parts[::2])
        made: dict[Any, Any] = self.charged(dict(zip(parts[::2], parts[1::2], strict=True)))
        return made


HIDDEN_ARGUMENTS = ("_loop_vars", "_block_vars")  # jinja2 adds them to calls


# The functions of templates -----------------------------------------------------------------------


@pass_environment
def make_dict(environment: GuardedEnvironment, /, *given: Any, **named: Any) -> dict[Any, Any]:
    """Return dict(...): a function rather than the type, whose methods no template needs."""
    if len(given) > 1:
        raise TypeError(f"dict expected at most 1 argument, got {len(given)}")
    items = listed(environment.meter, given[0]) if given else {}
    pairs = list(items.items()) if isinstance(items, dict) else items
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError("dict takes an object, or pairs of keys and values")
    check_new_keys(environment.meter, [pair[0] for pair in pairs])
    return {**dict(pairs), **named}


@pass_environment
def make_namespace(environment: GuardedEnvironment, /, *given: Any, **named: Any) -> Namespace:
    """Return namespace(...)."""
    return GuardedNamespace(make_dict(environment, *given, **named))


@pass_environment
def strftime_now(environment: GuardedEnvironment, layout: str) -> str:
    """Return the date: templates put today's into the system prompt."""
    if _DIRECTIVE_WIDTH.search(layout):
        raise unsupported("a date with a width")
    check_text(environment.meter, 64 * len(layout), layout)
    return datetime.now().strftime(layout)


@pass_environment
def raise_exception(environment: GuardedEnvironment, message: Any) -> None:
    """Refuse messages that the model was not trained on."""
    text = shorten(as_text(environment.meter, message))
    raise ChatTemplateError(f"the chat template refuses these messages: {text}")


class GuardedNamespace(Namespace):
    """A namespace that keeps a template away from Python's own attributes."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        for name in attributes:
            refuse_private(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        refuse_private(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # not what it holds, which may be itself


def refuse_private(name: str) -> None:
    """Raise SecurityError for names that could reach Python's own."""
    if name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template cannot hold {name!r}")
