"""From the syntax tree of a listing to nodes: names are resolved, mistakes collected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import get_args

from lark import Token, Tree

from opgen.diagnostics import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from opgen.dtypes import DTYPES, DType
from opgen.loop import build as b
from opgen.loop.nodes import (
    Barrier,
    Binary,
    BitCast,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Check,
    Compare,
    Const,
    Dot,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Parameter,
    Prefetch,
    Ramp,
    Select,
    Shuffle,
    Space,
    Stmt,
    Store,
    Type,
    Unary,
    Var,
    Word,
)
from opgen.loop.syntax import (
    BINARY_BY_TOKEN,
    BIT_CAST,
    CALLED,
    COMPARE_BY_TOKEN,
    FUNCTIONS,
    UNARY_BY_TOKEN,
    literal_type,
    parse_type,
)

Node = Tree[Token]
_ARGUMENTS: dict[str, int] = dict.fromkeys(CALLED, 2)
_ARGUMENTS |= {"select": 3, "pair": 2, "quad": 4, "dot": 3, "broadcast": 2, "ramp": 3}
LOOP_KINDS: dict[str, LoopKind] = {k: k for k in get_args(LoopKind)}
SPACES: dict[str, Space] = {s: s for s in get_args(Space)}


class Reader:
    """Turns a syntax tree into nodes, resolving names; mistakes are collected."""

    def __init__(self, source: Source, variables: dict[str, Type], buffers: dict[str, DType]) -> None:
        self.source = source
        self.variables = variables
        self.buffers = buffers
        self.mistakes: list[Diagnostic] = []

    def finish(self) -> None:
        if self.mistakes:
            raise DiagnosticError(self.mistakes)

    def mistake(self, code: str, message: str, where: Node | Token, help: str | None = None) -> None:
        place = where if isinstance(where, Token) else where.meta
        line, column = place.line or 1, place.column or 1
        span = Span(self.source, line, column, place.end_line or line, place.end_column or column + 1)
        self.mistakes.append(Diagnostic(code, message, span, help))

    # Header ---------------------------------------------------------------------------------------

    def kernel(self, tree: Node) -> Kernel:
        name, given, results, *rest = (c for c in tree.children if isinstance(c, Tree))
        declarations = [c for c in given.children if isinstance(c, Tree)]
        parameters = tuple(self.parameter(c) for c in declarations if c.data == "parameter")
        inputs = tuple(self.buffer(c, "global") for c in declarations if c.data == "buffer")
        outputs: list[Buffer] = []
        for c in results.children:
            assert isinstance(c, Tree)
            if c.data == "buffer":
                outputs.append(self.buffer(c, "global"))
            else:
                self.mistake("loop-result", "a kernel's results are buffers", c)
        assumptions = tuple(self.expr(child(c, 0)) for c in rest if c.data == "assume")
        body = self.sequence([c for c in rest if c.data != "assume"])
        return Kernel(self.name(name), inputs, tuple(outputs), parameters, body, assumptions)

    def parameter(self, tree: Node) -> Parameter:
        name = self.name(child(tree, 0))
        dtype = self.dtype(token_of(tree, 1))
        self.variables[name] = Type(dtype)
        if len(tree.children) == 2:
            return Parameter(name, dtype)
        return Parameter(name, dtype, self.bound(child(tree, 2), "-inf"), self.bound(child(tree, 3), "inf"))

    def bound(self, tree: Node, unbounded: str) -> int | None:
        text = "".join(str(c) for c in tree.children)
        if text == unbounded:
            return None
        if not re.fullmatch("-?[0-9]{1,20}", text):
            self.mistake("loop-bound", f"'{text}' is no bound of a parameter", tree, f"an integer or {unbounded}")
            return None
        return int(text)

    def buffer(self, tree: Node, space: Space) -> Buffer:
        name = self.name(child(tree, 0))
        dtype = self.dtype(token_of(tree, 1))
        shape: list[Expr] = []
        given: tuple[Expr, ...] | None = None
        for c in tree.children[2:]:
            assert isinstance(c, Tree)
            if c.data == "given":
                given = tuple(self.expr(e) for e in c.children if isinstance(e, Tree))
                continue
            if c.data != "space":
                shape.append(self.expr(c))
                continue
            word = token_of(c, 0)
            if word not in SPACES:
                self.mistake("loop-space", f"'{word}' is no memory space", word, did_you_mean(word, SPACES))
            space = SPACES.get(word, space)
        self.buffers[name] = dtype
        return Buffer(name, dtype, tuple(shape), space, given)

    def name(self, tree: Node) -> str:
        return str(token_of(tree, 0)).strip("`")

    def dtype(self, word: Token) -> DType:
        if word not in DTYPES:
            self.mistake("loop-type", f"'{word}' is no scalar type", word, did_you_mean(word, DTYPES))
        return DTYPES.get(word, DTYPES["int64"])

    def type(self, word: Token) -> Type:
        found = parse_type(word)
        if found is None:
            self.mistake("loop-type", f"'{word}' is no type", word, did_you_mean(word, DTYPES))
        return found or Type(DTYPES["int64"])

    # Statements -----------------------------------------------------------------------------------

    def suite(self, tree: Node) -> Stmt:
        return self.sequence([c for c in tree.children if isinstance(c, Tree)])

    def sequence(self, items: list[Node]) -> Stmt:
        """Return the statement that a suite's lines make."""
        statements = self.statements(items)
        return statements[0] if len(statements) == 1 else Block(tuple(statements))

    def statements(self, items: list[Node]) -> list[Stmt]:
        """Return the statements of a suite's lines; a `let` or `alloc` without a suite governs the lines after it."""
        made: list[Stmt] = []
        for number, item in enumerate(items):
            if item.data == "pass":
                if len(items) > 1:
                    self.mistake("loop-pass", "'pass' stands alone in its block", item)
            elif item.data in ("let_rest", "alloc_rest"):
                rest = items[number + 1 :]
                if not rest:
                    self.mistake("loop-empty", "nothing follows in which this name could be used", item, "add 'pass'")
                made.append(self.scoped(item, rest))
                break
            else:
                made.append(self.statement(item))
        return made

    def scoped(self, item: Node, body: list[Node]) -> Stmt:
        """Return a `let` or `alloc` over the lines of its body."""
        if item.data.startswith("let"):
            value = self.expr(child(item, 2))
            var = Var(self.name(child(item, 0)), self.type(token_of(item, 1)))
            hidden = dict(self.variables)
            self.variables[var.name] = var.type
            made: Stmt = Let(var, value, self.sequence(body))
            self.variables = hidden
            return made
        outer = dict(self.buffers)
        allocated = [self.buffer(child(item, 0), "global")]
        while len(body) > 1 and body[0].data == "alloc_rest":  # more of them, side by side
            allocated.append(self.buffer(child(body[0], 0), "global"))
            body = body[1:]
        made = b.alloc(allocated, self.sequence(body))
        self.buffers = outer
        return made

    def statement(self, item: Node) -> Stmt:
        match item.data:
            case "barrier":
                return Barrier()
            case "check":
                number = self.literal(token_of(item, 1), "")
                if number.type != Type(DTYPES["int64"]):
                    self.mistake("loop-literal", "a check is known by an integer", token_of(item, 1))
                return Check(self.expr(child(item, 0)), int(number.value), self.expr(child(item, 2)))
            case "prefetch":
                buffer = self.name(child(item, 0))
                self.known(buffer, self.buffers, "buffer", child(item, 0))
                return Prefetch(buffer, self.subscripts(item.children[1:])[0])
            case "block":
                return Block(tuple(self.statements([c for c in child(item, 0).children if isinstance(c, Tree)])))
            case "loop":
                return self.loop(item)
            case "conditional":
                condition = self.expr(child(item, 0))
                otherwise = self.suite(child(item, 2)) if len(item.children) > 2 else None
                return If(condition, self.suite(child(item, 1)), otherwise)
            case "store":
                buffer = self.name(child(item, 0))
                self.known(buffer, self.buffers, "buffer", child(item, 0))
                indices, mask = self.subscripts(item.children[1:-1])
                return Store(buffer, indices, self.expr(child(item, -1)), mask)
        return self.scoped(item, [c for c in child(item, -1).children if isinstance(c, Tree)])

    def loop(self, item: Node) -> For:
        kind: LoopKind = "serial"
        children = list(item.children)
        if isinstance(children[0], Token):
            kind = LOOP_KINDS[str(children.pop(0))]
        name, start, stop, body = (c for c in children if isinstance(c, Tree))
        first, last = self.expr(start), self.expr(stop)
        var = self.name(name)
        outer = dict(self.variables)
        self.variables[var] = Type(DTYPES["int64"])
        made = For(var, first, last, self.suite(body), kind)
        self.variables = outer
        return made

    # Expressions ----------------------------------------------------------------------------------

    def expr(self, tree: Node) -> Expr:
        children = tree.children
        match tree.data:
            case "parentheses":
                return self.expr(child(tree, 0))
            case "literal":
                return self.literal(token_of(tree, 0), "")
            case "variable":
                name = self.name(child(tree, 0))
                self.known(name, self.variables, "variable", tree)
                return Var(name, self.variables.get(name, Type(DTYPES["int64"])))
            case "typed_variable":
                return Var(self.name(child(tree, 0)), self.type(token_of(tree, 1)))
            case "unary":
                return self.unary(tree)
            case "binary" | "compare":
                left, right = self.expr(child(tree, 0)), self.expr(child(tree, 2))
                token = self.operator(tree, 1)
                if tree.data == "compare":
                    return Compare(COMPARE_BY_TOKEN[token], left, right)
                return Binary(BINARY_BY_TOKEN[token], left, right)
            case "load":
                name = self.name(child(tree, 0))
                self.known(name, self.buffers, "buffer", child(tree, 0))
                indices, mask = self.subscripts(children[1:])
                return Load(name, indices, self.buffers.get(name, DTYPES["float32"]), mask)
            case "typed_load":
                indices, mask = self.subscripts(children[2:])
                return Load(self.name(child(tree, 0)), indices, self.dtype(token_of(tree, 1)), mask)
        return self.call(token_of(tree, 0), [c for c in children[1:] if isinstance(c, Tree)], tree)

    def operator(self, tree: Node, number: int) -> str:
        child = tree.children[number]
        return str(child if isinstance(child, Token) else child.children[0])

    def unary(self, tree: Node) -> Expr:
        op = UNARY_BY_TOKEN[self.operator(tree, 0)]
        operand = child(tree, 1)
        if op == "neg" and operand.data == "literal":
            return self.literal(token_of(operand, 0), "-")
        return Unary(op, self.expr(operand))

    def known(self, name: str, names: Mapping[str, object], what: str, where: Node) -> None:
        if name not in names:
            self.mistake("loop-name", f"there is no {what} '{name}' here", where, did_you_mean(name, names))

    def subscripts(self, children: list[Token | Node]) -> tuple[tuple[Expr, ...], Expr | None]:
        indices = children[0]
        assert isinstance(indices, Tree)
        mask = children[1] if len(children) > 1 else None
        made = tuple(self.expr(c) for c in indices.children if isinstance(c, Tree))
        return made, self.expr(child(mask, 0)) if isinstance(mask, Tree) else None

    def literal(self, token: Token, sign: str) -> Const:
        """Read `3`, `3i32`, `0.5f32x16`, `inf_f64`, `true`, `false_x8`."""
        word, _, lanes = token.partition("_x")
        if word in ("true", "false"):
            return Const(word == "true", Type(DTYPES["bool"], int(lanes or 1)))
        match = re.fullmatch(r"(inf|nan|[0-9.]+(?:[eE][+-]?[0-9]+)?)_?([a-z].*)?", token)
        assert match is not None
        digits, suffix = match[1], match[2]
        type = literal_type(suffix or "i64") or Type(DTYPES["int64"])
        if type.dtype.is_float:
            return Const(math.nan if digits == "nan" else float(sign + digits), type)
        if not digits.isdigit():
            need = "a constant that is no integer needs a floating type"
            self.mistake("loop-literal", need, token, f"for example {digits}f32")
            return Const(0, type)
        if len(digits) > 20:
            self.mistake("loop-literal", f"this does not fit {type.dtype}", token)
            return Const(0, type)
        return Const(int(sign + digits), type)

    def call(self, word: Token, arguments: list[Node], tree: Node) -> Expr:
        """Return a function, a cast (of numbers or bits), or one of `_ARGUMENTS` and `shuffle`."""
        if word == "shuffle":
            return self.shuffle(arguments, tree)
        takes = _ARGUMENTS | {f: n for f, (_, n) in FUNCTIONS.items()}
        type = parse_type(word.removeprefix(BIT_CAST))
        if type is None and word not in takes:
            self.mistake("loop-function", f"there is no function '{word}'", word, did_you_mean(word, takes))
            return Const(0)
        wanted = 1 if type is not None else takes[word]
        if len(arguments) != wanted:
            noun = "argument" if wanted == 1 else "arguments"
            self.mistake("loop-arguments", f"'{word}' takes {wanted} {noun}, not {len(arguments)}", tree)
            return Const(0)
        if word in ("broadcast", "ramp"):
            lanes = self.lanes(arguments[-1])
            made = [self.expr(a) for a in arguments[:-1]]
            return Broadcast(made[0], lanes) if word == "broadcast" else Ramp(made[0], made[1], lanes)
        made = [self.expr(a) for a in arguments]
        if type is not None:
            return BitCast(type, made[0]) if word.startswith(BIT_CAST) else Cast(type, made[0])
        if word in CALLED:
            return Binary(BINARY_BY_TOKEN[word], made[0], made[1])
        match str(word):
            case "select":
                return Select(*made)
            case "pair" | "quad":
                return Word(tuple(made))
            case "dot":
                return Dot(*made)
            case _:
                return Call(FUNCTIONS[word][0], tuple(made))

    def shuffle(self, arguments: list[Node], tree: Node) -> Expr:
        """Read `shuffle(x, y, 0, 4, 1, 5)`: two vectors and the lanes that are picked out of them."""
        if len(arguments) < 4:
            self.mistake("loop-arguments", "'shuffle' takes two vectors and at least two lanes", tree)
            return Const(0)
        left, right, *picked = arguments
        return Shuffle(self.expr(left), self.expr(right), tuple(self.picked(a) for a in picked))

    def picked(self, tree: Node) -> int:
        text = str(tree.children[0]) if tree.data == "literal" else ""
        if not re.fullmatch("[0-9]{1,5}", text):
            self.mistake("loop-lanes", "a lane is picked by its number, an integer from 0", tree)
            return 0
        return int(text)

    def lanes(self, tree: Node) -> int:
        text = str(tree.children[0]) if tree.data == "literal" else ""
        if not re.fullmatch("[1-9][0-9]{0,3}", text):
            self.mistake("loop-lanes", "the number of lanes is an integer from 1 to 9999", tree)
            return 1
        return int(text)


def child(node: Node, number: int) -> Node:
    """Return the subtree that stands there by the grammar."""
    child = node.children[number]
    assert isinstance(child, Tree)
    return child


def token_of(node: Node, number: int) -> Token:
    """Return the token that stands there by the grammar."""
    child = node.children[number]
    assert isinstance(child, Token)
    return child
