"""The text of a graph, and back: `parse_graph(print_graph(g), data_of(g)) == g`.

  graph block {
    input x: float32[4, 3]
    constant w: float32[3, 5] = 5a1c...
    first: h: float32[4, 5] = Mix<T = float32>(x, w)
    squashed: y: float32[4, 5] = Clip<T = float32>(h) {low = 0.0, high = 6.0} at "model.onnx, node 7"
    output y as result
  }

  op Mix:
    op Mix {
    ...
    }

A digest represents a constant; its elements are kept beside the text.  An op is the text of a spec, which `opgen check`
accepts.  If two ops have the same name, the second is called `Mix.2` here.  A name that is not a word is quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache

from opgen.diagnostics import Diagnostic, DiagnosticError, Source, Span
from opgen.dtypes import DType, lookup
from opgen.graph.ir.nodes import Constant, Data, Graph, Node, Op, Value, op_of
from opgen.spec.call.environment import AttrStored
from opgen.spec.loading import load_text
from opgen.spec.unparse import write_op

_WORD = re.compile(r"[A-Za-z_/.][\w/.\-]*")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_/.][\w/.\-]*|-?(?:inf|\d[\w.]*(?:(?<=e)[+-]\d+)?)|\S')
_NUMBER = re.compile(r"-?\d+")
_INDENT = "  "


def print_graph(graph: Graph) -> str:
    """Return the text of a graph."""
    labels = _labels(graph)
    lines = [f"graph {_name(graph.name)} {{"]
    lines += [f"  input {_value(v)}" for v in graph.inputs]
    lines += [f"  constant {_value(c.value)} = {c.data.digest}" for c in graph.constants]
    lines += [f"  {print_node(graph, node, labels[node.op])}" for node in graph.nodes]
    for place, name in enumerate(graph.outputs):
        known = f" as {_name(graph.output_names[place])}" if graph.output_names else ""
        lines.append(f"  output {_name(name)}{known}")
    lines.append("}")
    for op, label in labels.items():
        lines += ["", f"op {_name(label)}:"]
        lines += [_INDENT + line if line else "" for line in write_op(op.module, op.spec).rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def print_node(graph: Graph, node: Node, label: str | None = None) -> str:
    """Return one line: a node, its results, its op and its inputs.

    `label` is the op's name in the text; by default it is the op's own name.
    """
    results = ", ".join(_value(graph.value[name]) for name in node.outputs)
    types = ", ".join(f"{name} = {word}" for name, word in node.types)
    attributes = ", ".join(f"{name} = {_datum(value)}" for name, value in node.attributes)
    text = f"{_name(node.name)}: {results} = {_name(label or node.op.spec.name)}"
    text += f"<{types}>" if types else ""
    text += f"({', '.join(map(_name, node.inputs))})"
    text += f" {{{attributes}}}" if attributes else ""
    return text + (f" at {_quoted(node.origin)}" if node.origin else "")


def data_of(graph: Graph) -> dict[str, Data]:
    """Return the elements of a graph's constants, by digest."""
    return {c.data.digest: c.data for c in graph.constants}


def _labels(graph: Graph) -> dict[Op, str]:
    """Return a name for each op, in the order in which nodes call them."""
    labels: dict[Op, str] = {}
    taken: set[str] = set()
    for node in graph.nodes:
        if node.op not in labels:
            name, number = node.op.spec.name, 1
            while (label := name if number == 1 else f"{name}.{number}") in taken:
                number += 1
            labels[node.op] = label
            taken.add(label)
    return labels


def _value(value: Value) -> str:
    return f"{_name(value.name)}: {value.dtype}[{', '.join(map(str, value.shape))}]"


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _datum(value: AttrStored) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_datum, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


# Back ---------------------------------------------------------------------------------------------------------------


def parse_graph(text: str, data: Mapping[str, Data], name: str = "<graph>") -> Graph:
    """Return the graph that a text describes; `data` has the constants' elements by digest, `name` is for messages.

    Raises DiagnosticError for text with another syntax.  `verify` checks the properties of graphs.
    """
    source = Source(name, text)
    end = source.lines.index("}") + 1 if "}" in source.lines else len(source.lines)
    return _Reader(source, data, _ops(source, end)).graph(end)


def _ops(source: Source, start: int) -> dict[str, Op]:
    """Return the ops after the graph, by their names in the text."""
    found: dict[str, Op] = {}
    number = start + 1
    while number <= len(source.lines):
        line = _Line(source, number)
        number += 1
        if line.at_end:
            continue
        line.expect("op")
        label = line.name("an op")
        line.expect(":")
        line.finish()
        body = []
        while number <= len(source.lines) and (not source.line(number) or source.line(number).startswith(_INDENT)):
            body.append(source.line(number).removeprefix(_INDENT))
            number += 1
        found[label] = _op("\n".join(body).rstrip("\n") + "\n", f"{source.name}, op {label}")
    return found


@lru_cache(maxsize=512)
def _op(text: str, name: str) -> Op:
    module = load_text(text, name)
    if len(module.ops) != 1:
        raise DiagnosticError([Diagnostic("graph-syntax", f"{name}: {len(module.ops)} ops, expected 1")])
    return op_of(module, module.ops[0])


class _Line:
    """One line, read token by token."""

    def __init__(self, source: Source, number: int) -> None:
        self._source = source
        self._number = number
        self._tokens = list(_TOKEN.finditer(source.line(number)))
        self._place = 0

    @property
    def at_end(self) -> bool:
        return self._place == len(self._tokens)

    def peek(self) -> str:
        return "" if self.at_end else self._tokens[self._place][0]

    def next(self, wanted: str) -> str:
        """Return the next token; `wanted` describes it in the error at the end of the line."""
        if self.at_end:
            raise self.error(f"expected {wanted}")
        self._place += 1
        return self._tokens[self._place - 1][0]

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.error(f"expected '{token}'")
        self._place += 1

    def take(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self._place += 1
        return True

    def back(self) -> _Line:
        self._place -= 1
        return self

    def finish(self) -> None:
        if not self.at_end:
            raise self.error("expected the end of the line")

    def error(self, message: str) -> DiagnosticError:
        """Return the error at the next token."""
        line = self._source.line(self._number)
        start, end = (len(line), len(line) + 1) if self.at_end else self._tokens[self._place].span()
        span = Span(self._source, self._number, start + 1, self._number, end + 1)
        return DiagnosticError([Diagnostic("graph-syntax", message, span)])

    def name(self, what: str) -> str:
        token = self.peek()
        if not token.startswith('"') and not _WORD.fullmatch(token):
            raise self.error(f"expected the name of {what}")
        return self.text(token) if token.startswith('"') else self.next(what)

    def text(self, token: str) -> str:
        """Return a quoted text."""
        try:
            found = json.loads(token)
        except ValueError:
            raise self.error("expected a text in double quotes") from None
        self._place += 1
        return str(found)

    def integer(self) -> int:
        if not _NUMBER.fullmatch(self.peek()):
            raise self.error("expected an integer")
        return int(self.next("an integer"))

    def datum(self) -> AttrStored:
        """Return the value of an attribute."""
        if self.take("["):
            items: list[int | float] = []
            while not self.take("]"):
                item = self.datum()
                if isinstance(item, str | tuple):
                    raise self.error("expected a list of numbers")
                items.append(item)
                if self.peek() != "]":
                    self.expect(",")
            whole = tuple(i for i in items if not isinstance(i, float))
            return whole if len(whole) == len(items) else tuple(map(float, items))
        token = self.peek()
        if token.startswith('"'):
            return self.text(token)
        if token in ("true", "false"):
            return self.next("a value") == "true"
        if _NUMBER.fullmatch(token):
            return self.integer()
        try:
            number = float(token)
        except ValueError:
            raise self.error("expected a number, a text or a list") from None
        self._place += 1
        return math.nan if math.isnan(number) else number


class _Reader:
    """Reader of a graph, line by line."""

    def __init__(self, source: Source, data: Mapping[str, Data], ops: Mapping[str, Op]) -> None:
        self._source = source
        self._data = data
        self._ops = ops
        self._inputs: list[Value] = []
        self._constants: list[Constant] = []
        self._values: list[Value] = []
        self._nodes: list[Node] = []
        self._outputs: list[str] = []
        self._output_names: list[str] = []

    def graph(self, end: int) -> Graph:
        """Return the graph whose closing brace is on line `end`."""
        first = _Line(self._source, 1)
        first.expect("graph")
        name = first.name("a graph")
        first.expect("{")
        first.finish()
        for number in range(2, end):
            line = _Line(self._source, number)
            if not line.at_end:
                self._item(line)
        last = _Line(self._source, end)
        last.expect("}")
        return Graph(
            name,
            tuple(self._inputs),
            tuple(self._constants),
            tuple(self._values),
            tuple(self._nodes),
            tuple(self._outputs),
            tuple(self._output_names),
        )

    def _item(self, line: _Line) -> None:
        word = line.name("an input, a constant, a node or an output")
        if line.take(":"):
            self._node(line, word)
        elif word == "input":
            self._inputs.append(self._value(line))
        elif word == "constant":
            value = self._value(line)
            line.expect("=")
            self._constants.append(Constant(value, self._elements(line)))
        elif word == "output":
            self._outputs.append(line.name("a value"))
            if line.take("as"):
                self._output_names.append(line.name("an output"))
        else:
            raise line.error("expected ':'")
        line.finish()

    def _elements(self, line: _Line) -> Data:
        if line.peek() not in self._data:
            raise line.error("no constant of that digest is given")
        return self._data[line.next("a digest")]

    def _value(self, line: _Line) -> Value:
        name = line.name("a value")
        line.expect(":")
        dtype = self._dtype(line)
        line.expect("[")
        shape: list[int] = []
        while not line.take("]"):
            shape.append(line.integer())
            if line.peek() != "]":
                line.expect(",")
        return Value(name, dtype, tuple(shape))

    def _dtype(self, line: _Line) -> DType:
        found = lookup(line.peek())
        if found is None:
            raise line.error("expected a scalar type")
        line.next("a scalar type")
        return found

    def _node(self, line: _Line, name: str) -> None:
        results = [self._value(line)]
        while line.take(","):
            results.append(self._value(line))
        line.expect("=")
        op = self._op(line)
        types: list[tuple[str, str]] = []
        if line.take("<"):
            while not line.take(">"):
                variable = line.name("a type variable")
                line.expect("=")
                types.append((variable, line.name("a type")))
                if line.peek() != ">":
                    line.expect(",")
        inputs = self._names(line)
        attributes: list[tuple[str, AttrStored]] = []
        if line.take("{"):
            while not line.take("}"):
                attribute = line.name("an attribute")
                line.expect("=")
                attributes.append((attribute, line.datum()))
                if line.peek() != "}":
                    line.expect(",")
        origin = line.text(line.peek()) if line.take("at") else ""
        outputs = tuple(v.name for v in results)
        self._nodes.append(Node(name, op, tuple(types), tuple(attributes), inputs, outputs, origin))
        self._values += results

    def _op(self, line: _Line) -> Op:
        label = line.name("an op")
        if label not in self._ops:
            raise line.back().error("no op of that name follows the graph")
        return self._ops[label]

    def _names(self, line: _Line) -> tuple[str, ...]:
        line.expect("(")
        found: list[str] = []
        while not line.take(")"):
            found.append(line.name("a value"))
            if line.peek() != ")":
                line.expect(",")
        return tuple(found)
