"""A module as the template needs it: every name chosen, every expression printed, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.python.attributes import (
    ParameterView,
    attribute_check,
    element_names,
    parameters,
    tuple_literal,
)
from opgen.bindings.python.counts import count_statements
from opgen.bindings.python.docstrings import op_docstring
from opgen.bindings.python.expressions import PythonPrinter
from opgen.bindings.python.generic_view import GenericView, generic_view
from opgen.bindings.python.layout import fit
from opgen.bindings.python.scope import RESERVED, OpScope
from opgen.bindings.python.signed import SignedView, signed_view
from opgen.bindings.python.sizes import SizePrinter
from opgen.bindings.python.text import Names, comment, docstring, literal, paragraphs
from opgen.bindings.signatures import other_functions, other_names
from opgen.spec.call import checks as c
from opgen.spec.model.model import AttrValue, Expr, Function, FunctionCall, Module, OpSpec, Require, ShapeLet, Tensor
from opgen.spec.model.walk import subexpressions
from opgen.spec.resolve.dimensions import size_name


@dataclass(frozen=True)
class FunctionView:
    """A shape function.  `statements` are its named integers, `result` its return value."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    docstring: str
    statements: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class OpView:
    """An op: its public function, its check, its operator.

    `itself` is the function's name within it, where an argument may have its name.

    `tensors` and `rest` are the arguments in the order in which the operator hands them to the check; a vector of
    sizes is among the rest, because its values count.
    """

    name: str
    title: str
    registered: str
    function: str
    itself: str
    checker: str
    operator: str
    parameters: tuple[ParameterView, ...]
    docstring: str
    returns: str
    method: str
    prepare: str
    handle: str
    tensors: tuple[str, ...]
    rest: tuple[str, ...]
    checked: tuple[str, ...]
    statements: tuple[str, ...]
    call: tuple[str, ...]
    counts: tuple[str, ...]
    signed: SignedView | None = None

    @property
    def operator_line(self) -> str:
        """Return the statement that makes the operator."""
        signed = "" if self.signed is None else f", {self.signed.data}"
        title = "" if self.title == self.name else f", title={literal(self.title)}"
        return f"{self.operator} = _library.operator({literal(self.name)}, {self.checker}{signed}{title})"


@dataclass(frozen=True)
class ModuleView:
    """A generated module; `source` names the spec it is made from."""

    source: str
    spec_file: str
    docstring: str
    public: tuple[str, ...]
    functions: tuple[FunctionView, ...]
    ops: tuple[OpView, ...]
    generics: tuple[GenericView, ...] = ()

    @property
    def show(self) -> str:
        """Return the statement that sets the signatures that the functions show."""
        signed = [f"{op.function}={literal(op.registered)}" for op in self.ops if op.signed is not None]
        return f"_library.show({', '.join(['globals()', *signed])})"


def module_view(module: Module, source: str, spec_file: str) -> ModuleView:
    """Return the view of a module; `source` is the spec's name for readers.

    `spec_file` is the file beside it with the flattened spec.
    """
    names = Names(RESERVED)
    functions = {f.name: (names.fresh(f"_{f.name}"), len(f.results)) for f in used_functions(module)}
    raw = Names({*RESERVED, "mro"})
    ops = tuple(_op_view(module, op, names, raw, functions) for op in module.ops)
    generics = tuple(generic_view(module, op, names, raw) for op in module.generics)
    functions_of = [*(op.function for op in ops), *(op.function for op in generics)]
    functions_of += [other for op in ops if op.signed is not None for other in op.signed.others]
    text = module.doc or f"The ops of {module.name}."
    return ModuleView(
        source=comment(source),
        spec_file=literal(spec_file),
        docstring=docstring("\n".join(paragraphs(text, 116)), 0),
        public=tuple(literal(n) for n in sorted([*functions_of, "prepare", "raw_ops"])),
        functions=tuple(_function_view(f, functions) for f in used_functions(module)),
        ops=ops,
        generics=generics,
    )


def used_functions(module: Module) -> tuple[Function, ...]:
    """Return the shape functions that the ops call, directly or not, in the module's order."""
    wanted: set[str] = set()

    def visit(e: Expr) -> None:
        for n in subexpressions(e):
            if isinstance(n, FunctionCall) and n.function not in wanted:
                wanted.add(n.function)
                f = module.function(n.function)
                for inner in (*(value for _, value in f.lets), *f.results):
                    visit(inner)

    for op in module.ops:
        for e in _shape_expressions(op):
            visit(e)
    return tuple(f for f in module.functions if f.name in wanted)


def _shape_expressions(op: OpSpec) -> Iterator[Expr]:
    """Yield the expressions that the generated check of an op computes."""
    for check in op.checks:
        if isinstance(check, ShapeLet):
            yield check.value
        else:
            yield check.condition
            yield from (p for p in check.expected if not isinstance(p, str))
    for tensor in (*op.outputs, *(t for t in op.tensors if t.follows)):
        yield from (d.size for d in tensor.dims)


# Shape functions ------------------------------------------------------------------------------------------------------


def _function_view(f: Function, functions: dict[str, tuple[str, int]]) -> FunctionView:
    names = Names({*RESERVED, *(name for name, _ in functions.values())})
    local = {p.name: names.fresh(p.name) for p in f.parameters}
    local |= {name: names.fresh(name) for name, _ in f.lets}
    printer = PythonPrinter(local, functions)
    count = len(f.results)
    return FunctionView(
        name=functions[f.name][0],
        parameters=tuple(f"{local[p.name]}: {'str' if p.values else 'int'}" for p in f.parameters),
        returns="int" if count == 1 else f"tuple[{', '.join(['int'] * count)}]",
        docstring=docstring("\n".join(paragraphs(f.doc or f"The shape function {f.name}.", 112)), 4),
        statements=tuple(f"{local[name]} = {printer.text(value)}" for name, value in f.lets),
        result=", ".join(printer.text(r, 1 if count > 1 else 0) for r in f.results),
    )


# Ops ------------------------------------------------------------------------------------------------------------------


def _op_view(module: Module, op: OpSpec, names: Names, raw: Names, functions: dict[str, tuple[str, int]]) -> OpView:
    scope = OpScope(op, (name for name, _ in functions.values()))
    function = names.fresh(op.function_name)
    tensors = tuple(scope.arguments[t.name] for t in op.tensors)
    arguments = [view.name for view in parameters(op, scope)]
    rest = tuple(a for a in arguments if a not in tensors)
    vectors = {scope.arguments[i.name] for i in op.inputs if not isinstance(i, Tensor)}
    single = len(op.outputs) == 1
    names.reserve(*other_functions(op))
    return OpView(
        name=op.name,
        title=op.title,
        registered=raw.fresh(op.name),
        function=function,
        itself=names.fresh(f"_{function}_function") if function in (*arguments, *other_names(op)) else function,
        checker=names.fresh(f"_check_{op.function_name}"),
        operator=names.fresh(f"_{op.function_name}"),
        parameters=parameters(op, scope),
        docstring=docstring(op_docstring(op, scope, function), 4),
        returns="Array" if single else f"tuple[{', '.join(['Array'] * len(op.outputs))}]",
        method="" if single else ".several",
        prepare="prepare" if single else "prepare_several",
        handle="Prepared" if single else "PreparedSeveral",
        tensors=tensors,
        rest=tuple(_passed(a, a in vectors, a == "name" and _takes_name(op, scope)) for a in rest),
        checked=tensors + rest,
        statements=tuple(line for s in _statements(op, scope, functions) for line in fit(s, 4)),
        call=tuple(line for a in _call(op, scope, functions) for line in fit(f"{a},", 8)),
        counts=tuple(count_statements(module, op, scope.arguments)),
        signed=signed_view(op, scope, tuple(n for n in op.signature if n not in {t.name for t in op.tensors})),
    )


def _takes_name(op: OpSpec, scope: OpScope) -> bool:
    """Return True if a call can be given a name, which has no effect."""
    return "name" in op.signature and "name" not in scope.arguments


def _passed(argument: str, is_vector: bool, is_name: bool) -> str:
    """Return an argument for the operator, which remembers calls by its arguments: a name is not worth remembering."""
    if is_name:
        return "None if type(name) is str else name"
    return f"plain_vector({argument})" if is_vector else argument


def _printer(scope: OpScope, functions: dict[str, tuple[str, int]]) -> PythonPrinter:
    return PythonPrinter(scope.symbols, functions, scope.element, scope.size_of)


def _statements(op: OpSpec, scope: OpScope, functions: dict[str, tuple[str, int]]) -> Iterator[str]:
    """Yield the body of a check, without its result: attributes, types, sizes, then lets and requirements in the spec's
    order.
    """
    for attr in op.attrs:
        statement = attribute_check(op, scope, attr)
        if statement is not None:
            yield statement
    if _takes_name(op, scope):
        yield "check.name(name)"
    yield from _types(op, scope)
    printer, sizes = _printer(scope, functions), SizePrinter(op, scope)
    for check in c.checks(op):
        match check:
            case c.Rank():
                yield sizes.rank(check)
            case c.Length():
                yield sizes.length(check)
            case c.Compare():
                yield from sizes.cases(check)
            case c.Solve():
                yield from sizes.cases(check)
                yield from _elements(op, scope)
            case ShapeLet():
                yield from _let(check, scope, printer)
            case Require():
                yield from _require(check, scope, printer)
            case c.Whole():
                yield _follows(check.tensor, scope, printer)


def _elements(op: OpSpec, scope: OpScope) -> Iterator[str]:
    """Yield the statements that name the elements of lists in a layout's order."""
    used = [e for root in _shape_expressions(op) for e in subexpressions(root) if isinstance(e, AttrValue)]
    for attr in op.attrs:
        statement = element_names(scope, attr, used)
        if statement is not None:
            yield statement


def _follows(t: Tensor, scope: OpScope, printer: PythonPrinter) -> str:
    """Return the statement that compares a tensor's whole shape with the one that follows from the rest."""
    sizes = _tuple([printer.text(d.size) for d in t.dims])
    names = tuple_literal(tuple(size_name(d) for d in t.dims))
    return f"check.whole({literal(t.name)}, {scope.shape(t.name)}, {sizes}, {names}, {_layout(t, scope)})"


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _layout(t: Tensor, scope: OpScope) -> str:
    """Return the logical order of a tensor's dimensions and the caller's; None if it has only one."""
    if t.layout is None:
        return "None"
    return f"({literal(scope.op.attr(t.layout).values[0])}, {scope.arguments[t.layout]})"


def _types(op: OpSpec, scope: OpScope) -> Iterator[str]:
    """Yield the statements that find the scalar type of each type variable and make arrays of the tensors."""
    for v in op.type_variables:
        members = [t for t in op.tensors if t.dtype == v.name]
        if members:
            targets = ", ".join(scope.arguments[t.name] for t in members) + ("," if len(members) == 1 else "")
            given = ", ".join(f"{literal(t.name)}: {scope.arguments[t.name]}" for t in members)
            allowed = tuple_literal(tuple(t.name for t in v.allowed))
            yield f"{scope.types[v.name]}, ({targets}) = check.common_type({allowed}, {{{given}}})"
    for t in op.tensors:
        if op.type_variable(t.dtype) is None:
            name = scope.arguments[t.name]
            yield f"{name} = check.typed({literal(t.name)}, {name}, {literal(t.dtype)})"


def _let(let: ShapeLet, scope: OpScope, printer: PythonPrinter) -> Iterator[str]:
    targets = ", ".join(scope.symbols[n] for n in let.names)
    several = len(let.names) > 1 and isinstance(let.value, FunctionCall)
    value = printer.call_all(let.value) if several and isinstance(let.value, FunctionCall) else printer.text(let.value)
    yield f"{targets} = {value}"


def _require(check: Require, scope: OpScope, printer: PythonPrinter) -> Iterator[str]:
    blamed = next((t for t in scope.op.tensors if t.name == check.argument), None)
    given = _given(scope, check.argument) if blamed is None else scope.shape(blamed.name)
    method = "wrong" if blamed is None else "wrong_shape"
    floats = (e for e in subexpressions(check.condition) if isinstance(e, AttrValue))
    exact = all(scope.op.attr(e.attr).kind != "float" for e in floats)
    condition = printer.negated(check.condition) if exact else f"not ({printer.text(check.condition)})"
    yield f"if {condition}:"
    yield f"    raise check.{method}({literal(check.argument)}, {_message(check, printer)}, {given})"


def _given(scope: OpScope, argument: str) -> str:
    """Return the caller's value of an attribute, as a message shows it."""
    attr = next((a for a in scope.op.attrs if a.name == argument), None)
    if attr is None or attr.payload is None:
        return scope.arguments[argument]
    carried = scope.op.attr(attr.payload[1])
    values = scope.arguments[carried.name]
    shown = f"rows({values}, {carried.shape[1]})" if len(carried.shape) > 1 else values
    return f"{shown} or {scope.arguments[argument]}"


def _message(check: Require, printer: PythonPrinter) -> str:
    """Return the expected condition, with the values that the spec asks to be shown."""
    values = [printer.text(p) for p in check.expected if not isinstance(p, str)]
    if not values:
        return literal("".join(p for p in check.expected if isinstance(p, str)))
    pieces = [p.replace("{", "{{").replace("}", "}}") if isinstance(p, str) else "{}" for p in check.expected]
    return f"{literal(''.join(pieces))}.format({', '.join(values)})"


def _call(op: OpSpec, scope: OpScope, functions: dict[str, tuple[str, int]]) -> Iterator[str]:
    """Yield the arguments of the `Call` that a check returns."""
    plain = [a for a in op.attrs if not a.compatibility]
    words = [a.name for a in plain if a.kind in ("enum", "layout")]
    others = [a.name for a in plain if a.kind not in ("enum", "layout")]
    arguments = {n: scope.arguments[n] for n in (*(t.name for t in op.tensors), *words, *others)}
    symbols = {s: local for s, local in scope.symbols.items() if s not in scope.arguments}
    yield f"tensors={_mapping({t.name: arguments[t.name] for t in op.tensors})}"
    yield f"types={_mapping({v: local for v, local in scope.types.items() if _is_bound(op, v)})}"
    yield f"words={_mapping({n: arguments[n] for n in words})}"
    yield f"attributes={_mapping({n: arguments[n] for n in others})}"
    yield f"integers={_mapping(symbols)}"
    printer = _printer(scope, functions)
    results = [_result(op, scope, printer, t) for t in op.outputs]
    yield f"results=({', '.join(results)}{',' if len(results) == 1 else ''})"


def _is_bound(op: OpSpec, variable: str) -> bool:
    return any(t.dtype == variable for t in op.tensors)


def _mapping(items: dict[str, str]) -> str:
    return "{" + ", ".join(f"{literal(k)}: {v}" for k, v in items.items()) + "}"


def _result(op: OpSpec, scope: OpScope, printer: PythonPrinter, t: Tensor) -> str:
    shape = _tuple([printer.text(d.size) for d in t.dims])
    dtype = scope.types[t.dtype] if op.type_variable(t.dtype) is not None else literal(t.dtype)
    first = op.inputs[0] if op.inputs else None
    blame = literal(op.name if first is None else first.name)
    if first is None:
        blamed = "None"
    elif isinstance(first, Tensor):
        blamed = scope.shape(first.name)
    else:
        blamed = f"{scope.arguments[first.name]}, vector=True"
    return f"check.result({literal(t.name)}, {shape}, {_layout(t, scope)}, {dtype}, {blame}, {blamed})"
