"""The syntax of chat templates: what of jinja2 they may use, and how it becomes Python.

Python's own operators would run unseen. So what can take long or grow is compiled into calls of the
environment, which charge for it.
"""

from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer

from py_runtime.chat.bounds import MAX_NODES
from py_runtime.chat.costs import check_integer
from py_runtime.chat.errors import ChatTemplateError

# Templates are compiled alone: include, import, extends and block have nothing to refer to.
ALLOWED = frozenset(
    {
        *(nodes.Add, nodes.And, nodes.Assign, nodes.AssignBlock, nodes.Break, nodes.Call),
        *(nodes.CallBlock, nodes.Compare, nodes.Concat, nodes.CondExpr, nodes.Const),
        *(nodes.Continue, nodes.Dict, nodes.Div, nodes.Filter, nodes.FilterBlock, nodes.FloorDiv),
        *(nodes.For, nodes.Getattr, nodes.Getitem, nodes.If, nodes.Keyword, nodes.List),
        *(nodes.Macro, nodes.Mod, nodes.Mul, nodes.Name, nodes.Neg, nodes.Not, nodes.NSRef),
        *(nodes.Operand, nodes.Or, nodes.Output, nodes.Pair, nodes.Pos, nodes.Pow, nodes.Scope),
        *(nodes.Slice, nodes.Sub, nodes.Template, nodes.TemplateData, nodes.Test, nodes.Tuple),
        nodes.With,
    }
)


class GenerationTag(Extension):
    """{% generation %}, which marks what the model itself says, for training; it is printed."""

    tags = {"generation"}  # noqa: RUF012 (so jinja2 declares it)

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the content as a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class CheckedSyntax(NodeTransformer):
    """A syntax tree without what is not allowed, in which the rest is charged for."""

    def __init__(self) -> None:
        self._count = 0

    def visit(self, node: nodes.Node, *args: Any, **named: Any) -> Any:
        """Return what stands in the place of a node."""
        if type(node) not in ALLOWED:
            kind = type(node).__name__.lower()
            raise ChatTemplateError(
                f"the chat template uses {kind} in line {node.lineno}, which is not supported"
            )
        self._count += 1
        if self._count > MAX_NODES:
            raise ChatTemplateError(
                f"the chat template has more than {MAX_NODES:,} names, values and tags"
            )
        return super().visit(node, *args, **named)

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        """Refuse integers that are too large to compute with."""
        if isinstance(node.value, int):
            check_integer(node.value)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """Charge for each turn of a loop, and for each item that is passed over."""
        begin = self._charged_body(node)
        if node.test is not None:
            node.test = nodes.And(begin, node.test, lineno=node.lineno)
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        """Charge for each call of a macro."""
        self._charged_body(node)
        return node

    visit_CallBlock = visit_Macro

    def _charged_body(self, node: Any) -> nodes.Call:
        before = self._count
        self.generic_visit(node)
        begin = _own("begin_body", nodes.Const(self._count - before, lineno=node.lineno))
        node.body.insert(0, nodes.ExprStmt(begin, lineno=node.lineno))
        return begin

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        """Charge for everything that is written."""
        self.generic_visit(node)
        for place, part in enumerate(node.nodes):
            text = nodes.Const(part.data) if isinstance(part, nodes.TemplateData) else part
            node.nodes[place] = _own("write", text)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """Charge for ~."""
        self.generic_visit(node)
        return _own("concatenate", *node.nodes)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """Charge for comparisons."""
        self.generic_visit(node)
        others = [part for operand in node.ops for part in (nodes.Const(operand.op), operand.expr)]
        return _own("compare", node.expr, *others)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """Charge for slices, which jinja2 leaves to Python."""
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        places = (node.arg.start, node.arg.stop, node.arg.step)
        return _own("slice_value", node.node, *(place or nodes.Const(None) for place in places))

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        """Check the keys of objects."""
        self.generic_visit(node)
        return _own(
            "make_object", *(part for pair in node.items for part in (pair.key, pair.value))
        )

    def visit_List(self, node: nodes.List) -> nodes.Node:
        """Charge for lists."""
        self.generic_visit(node)
        return node if getattr(node, "ctx", "load") == "store" else _own("charged", node)

    visit_Tuple = visit_List


def _own(name: str, *args: nodes.Expr) -> nodes.Call:
    """Return a call of the environment, which no template can spell."""
    lineno = args[0].lineno if args else 1
    called = nodes.EnvironmentAttribute(name, lineno=lineno)
    return nodes.Call(called, list(args), [], None, None, lineno=lineno)


class GuardedCodeGenerator(CodeGenerator):
    """A compiler that calls the environment's own methods directly."""

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        """Write a call; only what a template calls goes through the sandbox."""
        if not isinstance(node.node, nodes.EnvironmentAttribute):
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.write(f"environment.{node.node.name}(")
        for argument in node.args:
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")
