"""The resolved model of a spec, the input of every later stage.

A model holds no syntax and no unresolved name: fragments are expanded, imports merged, index ranges inferred, types
known.  Everything is frozen and compares by value (spans and positions of documentation do not count).

`expressions.py` defines the meaning of expressions.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from opgen.diagnostics import Span
from opgen.dtypes import DType
from opgen.locks import cached_property
from opgen.spec.model.expressions import *  # noqa: F403  (a model is read together with its expressions)
from opgen.spec.model.expressions import Expr, IndexRange
from opgen.spec.syntax import nodes as s


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a shape function; `values` are the words of an enumerated one, empty for an integer."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A shape function: named intermediate integers, then one result or several (`result_names` names them for
    readers).
    """

    name: str
    parameters: tuple[Parameter, ...]
    lets: tuple[tuple[str, Expr], ...]
    results: tuple[Expr, ...]
    result_names: tuple[str, ...]
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeVariable:
    name: str
    allowed: tuple[DType, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a tensor.

    `factors` are the names of the symbols whose product it is (usually one); an integer literal is an int.  An output's
    dimension may be any expression of the shape language: then `factors` is empty and `size` is the expression.
    `broadcast`: the caller's size may also be 1.
    """

    size: Expr
    factors: tuple[str | int, ...] = ()
    broadcast: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output.

    `dtype` is the name of a type variable or of a scalar type; `dims` are in logical order.  `shape_only`: only the
    shape of the caller's tensor counts.  `follows`: the shape follows from the other inputs and the named integers.  It
    is compared as a whole, after all requirements, and solved for a symbol only if no other input determines it.  Its
    dimensions are expressions, as an output's are.
    """

    name: str
    dtype: str
    dims: tuple[Dimension, ...]
    layout: str | None = None
    doc: str = ""
    shape_only: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    follows: bool = False

    @property
    def rank(self) -> int:
        return len(self.dims)


@dataclass(frozen=True, slots=True)
class Sizes:
    """An int32 vector input whose values give dimensions, in one of several forms distinguished by their lengths.

    A form is a tuple of dimensions (in logical order if `layouts` names a layout attribute for it, permuted by the
    caller).  `bindings` has, for each form, the symbols with values that it fixes without containing them (`where
    groups = 1`); empty if no form fixes any.
    """

    name: str
    forms: tuple[tuple[Dimension, ...], ...]
    layouts: tuple[str | None, ...]
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    bindings: tuple[tuple[tuple[str, int], ...], ...] = ()


AttrKind = Literal["int", "float", "bool", "enum", "layout"]
AttrDefault: TypeAlias = int | float | bool | str | tuple[int, ...] | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute.

    `shape` is () for a scalar, (4,) for a list of 4 and (4, 2) for 4 pairs (given flat, in `layout`'s order along the
    first dimension).  `values` are the words of an enumeration or a layout.  The values of a layout are permutations of
    the same letters; the first one is the logical order.  `minimum` and `maximum` bound every element.  An int is an
    int32 unless these reach further or it is declared an int64 (`wide`).  `optional`: the empty list is a value, and
    the default.  `compatibility`: accepted, without effect.  `alias`: an alternative keyword (callers may give only one
    of the two).  `payload`: for an enumeration, (word, attribute): the word is chosen by giving that list attribute as
    this attribute's value.  `carried_by` names the enumeration from the other side.  `counter` names the op that
    computes the value from the same inputs, if callers do not give it.
    """

    name: str
    kind: AttrKind
    shape: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    has_default: bool = False
    default: AttrDefault = None
    minimum: int | None = None
    maximum: int | None = None
    wide: bool = False
    optional: bool = False
    layout: str | None = None
    compatibility: bool = False
    deprecated: str | None = None
    alias: str | None = None
    payload: tuple[str, str] | None = None
    carried_by: str | None = None
    counter: str = ""
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Require:
    """A condition on dimensions and attributes.

    `argument` is the input or attribute that it blames.  `expected` completes "expected ..." and alternates text and
    expressions of the shape language (`{in_height}` in the spec).
    """

    condition: Expr
    argument: str
    expected: tuple[str | Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ShapeLet:
    """Named integers: one name for a plain expression, several for the results of one function call."""

    names: tuple[str, ...]
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """The mathematics of an output or of a `let` tensor: `tensor[subscripts] = value` for all `indices`.

    Each subscript is an index, or a mixed-radix composite of several that covers its dimension exactly once.  `dtype`
    is the type variable or scalar type whose compute type the value has.  For a `let`, `dims` are its extents.
    """

    tensor: str
    indices: tuple[IndexRange, ...]
    subscripts: tuple[Expr, ...]
    value: Expr
    dtype: str
    dims: tuple[Expr, ...]
    is_output: bool
    span: Span | None = field(default=None, compare=False, repr=False)


ExampleValue: TypeAlias = "int | float | bool | str | tuple[ExampleValue, ...]"


@dataclass(frozen=True, slots=True)
class Example:
    """Small literal arguments and results: nested tuples for tensors and lists; `decl` is the declaration."""

    title: str
    values: tuple[tuple[str, ExampleValue], ...]
    decl: s.ExampleDecl = field(repr=False, compare=False)


SpecializedValue: TypeAlias = int | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Specialization:
    """A specialization: calls that get a kernel of their own in a library.

    It fixes the values of some dimensions, attributes (lists in logical order), layouts and type variables; the rest
    stays open.
    """

    values: tuple[tuple[str, SpecializedValue], ...]


@dataclass(frozen=True, slots=True)
class Gradient:
    """The origin of a gradient op, whose mathematics are the adjoint of another op's with respect to one of its inputs.

    `cotangents` has, for each output of that op in order, the input of this op that holds the gradient with respect to
    it.
    """

    op: str
    wrt: str
    span: Span | None = field(default=None, compare=False, repr=False)
    cotangents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Alternative mathematics for the results of an op, with different rounding, and different results on overflow.

    It is legal for the types in `type_variables` where `condition` holds (None: everywhere).  `facts` are the values of
    symbols and elements of attributes that the condition fixes; `definitions` have them substituted.  `optional`: only
    if the caller asks for such algorithms.
    """

    name: str
    type_variables: tuple[TypeVariable, ...]
    condition: Expr | None
    facts: tuple[tuple[Expr, int], ...]
    definitions: tuple[Definition, ...]
    optional: bool = False
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Elements:
    """A list attribute of which callers give only some elements: one value for all of these, or one for each.

    `letters` name them in the attribute's layout; the other elements are `fill`.
    """

    letters: str
    fill: int


@dataclass(frozen=True, slots=True)
class InPlace:
    """An enumeration that callers may replace by the list `payload`, which means `word`."""

    word: str
    payload: str


@dataclass(frozen=True, slots=True)
class SignatureArgument:
    """An argument of one signature: an input, an attribute, an alias of one, or `name`.

    `called` are the names that a caller may write, in order of preference.  `default` is the default of an attribute
    that declares none itself; None: there is none here either.
    """

    name: str
    called: tuple[str, ...]
    form: Elements | InPlace | None = None
    default: AttrDefault = None


@dataclass(frozen=True, slots=True)
class Signature:
    """One of several orders of an op's arguments; `function` is another name of the op's function ("": none)."""

    label: str
    arguments: tuple[SignatureArgument, ...]
    function: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the arguments in order, by their names in the op."""
        return tuple(a.name for a in self.arguments)


class _Indexed:
    """A dataclass with cached properties, which its pickle omits."""

    def __getstate__(self) -> dict[str, object]:
        return {name: vars(self)[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]


@dataclass(frozen=True)
class OpSpec(_Indexed):
    """An op.

    `inputs` are in the caller's order; `checks` are the integer lets and requirements in source order.  `signature` is
    the order of the generated function's arguments (with `name` if the caller may give a name there).  If Python's
    function takes several orders, `signatures` has all of them, that one first; else it is empty.
    """

    name: str
    function_name: str
    signature: tuple[str, ...]
    type_variables: tuple[TypeVariable, ...]
    inputs: tuple[Tensor | Sizes, ...]
    attrs: tuple[Attr, ...]
    outputs: tuple[Tensor, ...]
    checks: tuple[ShapeLet | Require, ...]
    definitions: tuple[Definition, ...]
    gradient: Gradient | None = None
    examples: tuple[Example, ...] = ()
    specializations: tuple[Specialization, ...] = ()
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    algorithms: tuple[Algorithm, ...] = ()
    signatures: tuple[Signature, ...] = ()

    @property
    def title(self) -> str:
        """Return the name of the op in messages about calls; a derived gradient is named after its op and input."""
        made = self.gradient
        if made is None or made.span is not None:
            return self.name
        return f"gradient of {made.op} with respect to '{made.wrt}'"

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the inputs that are tensors (not sizes)."""
        return tuple(i for i in self.inputs if isinstance(i, Tensor))

    def attr(self, name: str) -> Attr:
        return next(a for a in self.attrs if a.name == name)

    def type_variable(self, name: str) -> TypeVariable | None:
        return next((v for v in self.type_variables if v.name == name), None)


@dataclass(frozen=True)
class GenericOp(_Indexed):
    """An op that leaves a form open.

    `decl` has its fragments expanded; `functions` and `ops` are those of its module.  `instances` caches the plain ops
    made of it, by form.
    """

    name: str
    function_name: str
    decl: s.OpDecl
    functions: tuple[Function, ...] = field(repr=False)
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    instances: OrderedDict[object, object] = field(default_factory=OrderedDict, compare=False, repr=False, hash=False)
    ops: Ops = field(default_factory=dict, compare=False, repr=False, hash=False)

    @cached_property
    def inputs(self) -> tuple[s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl, ...]:
        """Return the inputs, in order."""
        return tuple(
            i
            for i in self.decl.items
            if isinstance(i, s.StaticDecl | s.SizesDecl)
            or (isinstance(i, s.TensorDecl | s.SeveralDecl) and i.keyword in ("input", "inputs"))
        )

    @cached_property
    def attrs(self) -> tuple[s.AttrDecl, ...]:
        """Return the attributes, in the order of declaration."""
        return tuple(i for i in self.decl.items if isinstance(i, s.AttrDecl))

    @cached_property
    def outputs(self) -> tuple[s.TensorDecl | s.SeveralDecl, ...]:
        """Return the outputs, in order."""
        return tuple(
            i
            for i in self.decl.items
            if isinstance(i, s.TensorDecl | s.SeveralDecl) and i.keyword in ("output", "outputs")
        )


Ops: TypeAlias = "dict[str, OpSpec | GenericOp | None]"
"""The ops of a module by name; None for an op with mistakes."""


@dataclass(frozen=True, slots=True)
class Version:
    """A range of versions of a set of ops, in which `op` implements the op called `name`.

    It covers `first` to `last` (None: all from `first`).  If `each` is not empty, the set's op is this op for each of
    several tensors at the inputs from `each` on.
    """

    name: str
    op: str
    first: int
    last: int | None = None
    each: str = ""


@dataclass(frozen=True)
class Module(_Indexed):
    """The ops of a spec file and of its imports, with the shape functions they use.

    `generics` leave ranks, inputs or lengths open: `opgen.spec.generic.instance` makes plain ops of them.  `formulas`
    are the names of functions that stand for expressions; these are expanded.  `digest` is the sha256 of the source
    texts.
    """

    name: str
    ops: tuple[OpSpec, ...]
    functions: tuple[Function, ...]
    doc: str = ""
    generics: tuple[GenericOp, ...] = ()
    versions: tuple[Version, ...] = ()
    formulas: tuple[str, ...] = ()
    digest: str = field(default="", compare=False, repr=False)

    def op(self, name: str) -> OpSpec:
        return next(o for o in self.ops if o.name == name)

    def named(self, name: str) -> OpSpec | GenericOp:
        """Return the op of a name, generic or not."""
        return self._named[name]

    def plain(self, name: str) -> OpSpec | None:
        """Return the plain op of a name; None if there is none."""
        found = self._named.get(name)
        return found if isinstance(found, OpSpec) else None

    def generic(self, name: str) -> GenericOp | None:
        """Return the generic op of a name; None if there is none."""
        found = self._named.get(name)
        return found if isinstance(found, GenericOp) else None

    @cached_property
    def _named(self) -> dict[str, OpSpec | GenericOp]:
        found: dict[str, OpSpec | GenericOp] = {generic.name: generic for generic in self.generics}
        return found | {op.name: op for op in self.ops}

    def by_version(self, name: str, version: int) -> OpSpec | GenericOp | None:
        """Return the op that implements a name in a version of a set of ops; None if there is none.

        The newest matching range counts; an op whose spec names no versions matches all.
        """
        held = self.holding(name, version)
        target = name if held is None else held.op
        if held is None and name in self._versioned:
            return None
        return self._named.get(target)

    def holding(self, name: str, version: int) -> Version | None:
        """Return the newest range of versions that contains a version of an op of a set; None if there is none."""
        ranges = self._versions.get(name, ())
        held = [v for v in ranges if v.first <= version and (v.last is None or version <= v.last)]
        return max(held, key=lambda v: v.first) if held else None

    @cached_property
    def _versions(self) -> dict[str, list[Version]]:
        found: dict[str, list[Version]] = {}
        for version in self.versions:
            found.setdefault(version.name, []).append(version)
        return found

    @cached_property
    def _versioned(self) -> frozenset[str]:
        return frozenset(v.op for v in self.versions)

    def function(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)
