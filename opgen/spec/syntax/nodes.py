"""The syntax tree of a spec file: the written declarations with unresolved names.

Trees compare by content: spans do not count.  `parse(print(tree)) == tree` holds for every parsed tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from opgen.diagnostics import Source
from opgen.spec.syntax.expressions import *  # noqa: F403  (a tree is read together with its expressions)
from opgen.spec.syntax.expressions import Call, Constant, Doc, Expression, Ident, Named, Node, Range, Text


@dataclass(frozen=True, slots=True)
class ListValue(Node):
    """A list of literal values."""

    items: tuple[Value, ...]


Value: TypeAlias = Constant | Named | ListValue | Text
"""A literal in a default or an example: a number, a word, a list, or a text."""


# Declarations in an op or a fragment --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Elements(Node):
    """`[H, W] else 1` after a list attribute: callers may give only these elements; the others are `fill`."""

    letters: tuple[Ident, ...]
    fill: Constant


@dataclass(frozen=True, slots=True)
class InPlace(Node):
    """`{WORD = list}` after an enumeration: callers may give the attribute `list` instead, which means the word."""

    word: Ident
    payload: Ident


@dataclass(frozen=True, slots=True)
class Taken(Node):
    """An argument of a signature; its caller writes `called` for `name`, or (`also`) either of them."""

    name: Ident
    called: Ident | None = None
    also: bool = False
    form: Elements | InPlace | None = None
    default: Value | None = None


@dataclass(frozen=True, slots=True)
class SignatureDecl(Node):
    """`signature "label" function(arguments)`: an order in which the arguments of an op may be given.

    If an op has several, each has a label; `function` is another name of the op's function.
    """

    arguments: tuple[Taken, ...]
    label: Text | None = None
    function: Ident | None = None


@dataclass(frozen=True, slots=True)
class TypeDecl(Node):
    name: Ident
    allowed: tuple[Ident, ...]


@dataclass(frozen=True, slots=True)
class Dim(Node):
    """A dimension; `broadcast` is the literal after `|`.  `each`: each of several tensors has its own."""

    size: Expression
    broadcast: str | None
    each: bool = False


@dataclass(frozen=True, slots=True)
class TensorDecl(Node):
    keyword: Literal["input", "output"]
    name: Ident
    dtype: Ident
    dims: tuple[Dim, ...]
    layout: Ident | None
    shape_only: bool
    doc: Doc | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class SeveralDecl(Node):
    """`inputs name: T[dims] one or more`, or `outputs`: as many tensors as a call has."""

    keyword: Literal["inputs", "outputs"]
    name: Ident
    dtype: Ident
    dims: tuple[Dim, ...]
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class StaticDecl(Node):
    """An input whose values are part of the form: a list of integers, or (`scalar`) one."""

    name: Ident
    dtype: Ident
    scalar: bool
    optional: bool
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class RankRule(Node):
    """`pack <= most`, or `pack = value of tensor`; with `tensor`, the value is an axis of it."""

    pack: Ident
    most: str | None
    value: Expression | None
    tensor: Ident | None


@dataclass(frozen=True, slots=True)
class RankDecl(Node):
    rules: tuple[RankRule, ...]


@dataclass(frozen=True, slots=True)
class VersionsDecl(Node):
    """`versions first to last of op`: the versions of a set of ops in which this op implements the op of that name.

    The name may begin with the name of the set.  `each input`: the inputs from this one on take several tensors there.
    """

    first: str
    last: str | None
    op: Ident | None
    each: Ident | None = None


@dataclass(frozen=True, slots=True)
class InheritedDecl(Node):
    """In a gradient op: `input name` of its op, or an input or output `like` an output or input of it."""

    keyword: Literal["input", "output"]
    name: Ident
    like: Ident | None
    shape_only: bool
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """`name = value` after a form of sizes: a dimension that this form fixes."""

    name: Ident
    value: str


@dataclass(frozen=True, slots=True)
class Form(Node):
    """Dimensions; or, with `like`, the dimensions of an input of the forward op (in a gradient op)."""

    dims: tuple[Dim, ...]
    layout: Ident | None
    bindings: tuple[Binding, ...]
    like: Ident | None = None


@dataclass(frozen=True, slots=True)
class SizesDecl(Node):
    name: Ident
    forms: tuple[Form, ...]
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A value of an enumeration or a layout, with the attribute that holds its payload."""

    name: Ident
    payload: Ident | None


@dataclass(frozen=True, slots=True)
class AttrType(Node):
    """A type: `kind` is int, float, ...  (or unknown).

    `shape` has numbers, "..." for any length, or expressions in ranks.
    """

    kind: Ident
    shape: tuple[str | Expression, ...]
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class AttrDecl(Node):
    name: Ident
    type: AttrType
    minimum: Constant | None
    maximum: Constant | None
    layout: Ident | None
    default: Value | None
    compatibility: bool
    deprecated: Text | None
    alias: Ident | None
    doc: Doc | None
    counter: str = ""


@dataclass(frozen=True, slots=True)
class CountDecl(Node):
    """`count name = value`: a size that is computed from elements before the op runs."""

    name: Ident
    value: Expression
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class UseDecl(Node):
    fragment: Ident


@dataclass(frozen=True, slots=True)
class RequireDecl(Node):
    condition: Expression
    argument: Ident
    expected: Text


@dataclass(frozen=True, slots=True)
class LetDecl(Node):
    """Named integers: `let a = ...`, `let a, b = f(...)`."""

    names: tuple[Ident, ...]
    value: Expression


@dataclass(frozen=True, slots=True)
class OpCall(Node):
    """`let a, b = Op(tensors, attribute = value)`: the results of another op.  The parser makes a `LetDecl` of it."""

    names: tuple[Ident, ...]
    call: Call


@dataclass(frozen=True, slots=True)
class PackLet(Node):
    """`let a..., b... = pattern...`: lists of integers, element by element."""

    names: tuple[Ident, ...]
    value: Expression


@dataclass(frozen=True, slots=True)
class DefinitionDecl(Node):
    """`target[subscripts] = value where ...`, for an output or (`let`) for an intermediate tensor.

    With an `update` ("add", "set", ...) it is `target[subscripts] add= value where ... if condition`, for a tensor that
    the definition before it defines.  A `pack`, `let a[i]... = pattern...`, defines a tensor for each element.
    """

    let: bool
    target: Ident
    subscripts: tuple[Expression, ...]
    value: Expression
    where: tuple[Range, ...]
    update: str | None = None
    condition: Expression | None = None
    pack: bool = False


@dataclass(frozen=True, slots=True)
class Entry(Node):
    name: Ident
    value: Value


@dataclass(frozen=True, slots=True)
class ExampleDecl(Node):
    title: Text
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class SpecializeDecl(Node):
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class GradientDecl(Node):
    op: Ident
    wrt: Ident


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A list of numbers, or of nested lists; a number may be an expression of others."""

    items: tuple[Expression | Table, ...]


@dataclass(frozen=True, slots=True)
class ConstantDecl(Node):
    """`constant name[sizes] = [[...], ...]`: numbers that the mathematics read by indices."""

    name: Ident
    shape: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class WhenDecl(Node):
    """A condition under which an algorithm is legal."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class AlgorithmDecl(Node):
    """Alternative mathematics for the same results; `optional`: used only if the caller asks for such algorithms."""

    name: Ident
    optional: bool
    doc: Doc | None
    items: tuple[Item, ...]


Tensors: TypeAlias = TensorDecl | InheritedDecl | SizesDecl | SeveralDecl | StaticDecl | RankDecl
Numbers: TypeAlias = AttrDecl | LetDecl | PackLet | CountDecl | ConstantDecl | TypeDecl | RequireDecl | WhenDecl
Others: TypeAlias = SignatureDecl | UseDecl | ExampleDecl | SpecializeDecl | GradientDecl | AlgorithmDecl | VersionsDecl
Item: TypeAlias = Tensors | Numbers | Others | DefinitionDecl | OpCall


# Declarations of a file ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImportDecl(Node):
    path: Text


@dataclass(frozen=True, slots=True)
class ParameterDecl(Node):
    """A parameter of a function; `values` if it is enumerated."""

    name: Ident
    values: tuple[Ident, ...]


@dataclass(frozen=True, slots=True)
class ReturnDecl(Node):
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FunctionDecl(Node):
    name: Ident
    parameters: tuple[ParameterDecl, ...]
    results: tuple[Ident, ...]
    doc: Doc | None
    lets: tuple[LetDecl, ...]
    returns: ReturnDecl


@dataclass(frozen=True, slots=True)
class FormulaDecl(Node):
    """`function f(x) = value`: a call expands to the value with its arguments substituted."""

    name: Ident
    parameters: tuple[ParameterDecl, ...]
    value: Expression
    doc: Doc | None


@dataclass(frozen=True, slots=True)
class FragmentDecl(Node):
    name: Ident
    doc: Doc | None
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class OpDecl(Node):
    name: Ident
    doc: Doc | None
    items: tuple[Item, ...]


Declaration: TypeAlias = ImportDecl | FunctionDecl | FormulaDecl | FragmentDecl | OpDecl


@dataclass(frozen=True, slots=True)
class File:
    """A parsed file."""

    source: Source = field(compare=False, repr=False)
    doc: Doc | None
    items: tuple[Declaration, ...]
