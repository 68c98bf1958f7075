"""Calls of generic ops from Python: the form is found from the arguments, and the plain op of it is called.

Each plain op is a function of a module made in memory, with the checks and messages of any other; it is made when its
form is first called, and kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.dtypes import lookup
from opgen.exact import Exact
from opgen.runtime.call.checks import Checks
from opgen.runtime.call.plan import Prepared, PreparedSeveral
from opgen.runtime.call.recording import Symbol
from opgen.runtime.call.specialize import Library
from opgen.runtime.call.tensors import Array, are_bools, native
from opgen.runtime.devices.borrowed import is_device_array

if TYPE_CHECKING:
    from opgen.runtime.call.operator import Operator
    from opgen.spec.generic import Argument, Instance
    from opgen.spec.model.model import GenericOp, Module, OpSpec
    from opgen.spec.syntax.nodes import AttrDecl, StaticDecl

KEPT = 512
"""Forms, and functions of forms, that are kept of one op, the least recently used leaving first."""

MOST = 1 << 24
"""Numbers of an attribute at most."""
TENSORS = 1 << 16
"""Greatest number of tensors of an argument that takes several."""
DEEP = 8
"""Greatest depth of nested lists in attributes."""

Function = Callable[..., Any]
_NUMBERS = (int, float, list, tuple, np.ndarray, np.generic)
_SCALARS = frozenset((bool, int, float, str))
_ATTRIBUTES = "attributes"
"""In a key, between tensors and attributes."""


@dataclass(frozen=True)
class _Form:
    """The function of a plain op; `positions` are, for each of its inputs, that of its tensor in the call."""

    function: Function
    positions: tuple[int, ...]
    attributes: tuple[object, ...]
    as_given: int
    """The number of tensors of a call whose tensors are the plain op's, in order; -1 if those are others."""


class Generic:
    """A generic op of a generated module; called with tensors, attributes, the number of results and `out`."""

    def __init__(self, library: Library, name: str) -> None:
        self.name = name
        self.library = library
        library.generics[name] = self
        self._forms: OrderedDict[object, _Form] = OrderedDict()
        self._functions: OrderedDict[OpSpec, Function] = OrderedDict()
        self._numbers: tuple[bool, ...] | None = None
        """For each input, True if its values count; not known before the first call."""
        self._sized = False
        """True if a form depends on sizes."""

    def __reduce__(self) -> tuple[Callable[[Library, str], object], tuple[Library, str]]:
        return _generic, (self.library, self.name)

    def each(self, argument: str, given: object) -> tuple[object, ...]:
        """Return the tensors of an argument that takes several."""
        if isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping | Set):
            with suppress(TypeError):  # of an array without dimensions
                if len(given) > TENSORS:
                    raise Checks(self.name).wrong(argument, f"at most {TENSORS} tensors", given)
                found = tuple(given)
                if all(tensor is not None for tensor in found):
                    return found
        raise Checks(self.name).wrong_type(argument, "a list of tensors", given)

    def single(self, tensors: Sequence[object], attributes: Mapping[str, object], out: object) -> Array:
        """Return the result of an op that has one."""
        found: Array = self._call(tensors, attributes, None, out)
        return found

    def several(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None, out: object
    ) -> tuple[Array, ...]:
        """Return the results of an op that has as many as requested."""
        if isinstance(out, tuple) and len(out) == 1:
            out = out[0]
        found: Array | tuple[Array, ...] = self._call(tensors, attributes, results, out)
        return found if isinstance(found, tuple) else (found,)

    def some(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None, out: object
    ) -> Array | tuple[Array, ...]:
        """Return the result, or the results, of an op that has optional ones."""
        found: Array | tuple[Array, ...] = self._call(tensors, attributes, results, out)
        return found

    def prepare(self, tensors: Sequence[object], attributes: Mapping[str, object]) -> Prepared:
        """Return a handle for calls like this one of an op with one result, without a look at the tensors' contents."""
        found: Prepared = self._prepared(tensors, attributes, None)
        return found

    def prepare_some(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None
    ) -> Prepared | PreparedSeveral:
        """Prepare an op with several results, or as many as requested."""
        found: Prepared | PreparedSeveral = self._prepared(tensors, attributes, results)
        return found

    def _prepared(self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None) -> Any:
        form, given = self._form(tensors, attributes, results)
        prepare = getattr(form.function.__globals__["prepare"], form.function.__name__)
        return prepare(*(given[p] for p in form.positions), *form.attributes)

    # Forms ------------------------------------------------------------------------------------------

    def _call(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None, out: object
    ) -> Any:
        form, given = self._form(tensors, attributes, results)
        if form.as_given == len(given):
            return form.function(*given, *form.attributes, out=out)
        return form.function(*[given[p] for p in form.positions], *form.attributes, out=out)

    def _form(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None
    ) -> tuple[_Form, Sequence[object]]:
        """Return the form of a call, and its tensors.

        It is known by the arrays' types and ranks, and by numbers whose values count, if there is nothing else.
        """
        quick = None if self._numbers is None else self._quick(tensors, attributes, results)
        try:
            kept = None if quick is None else self._forms.get(quick)
        except TypeError:  # some value cannot be a part of a key
            return self._found(tensors, attributes, results)
        if kept is not None:
            return kept, tensors
        found, given = self._found(tensors, attributes, results)
        quick = self._quick(tensors, attributes, results) if quick is None else quick
        if quick is not None and _hashable(quick):
            _keep(self._forms, quick, found)
        return found, given

    def _quick(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None
    ) -> tuple[object, ...] | None:
        """Return the key of a call's form without a look at the op; None where that is not enough.

        All of the cost of a call with arrays alone, besides its plain op, is here: loops without calls, and keys
        without tuples in them.
        """
        numbers, sized = self._numbers or (False,), self._sized
        last = len(numbers) - 1
        key: list[object] = [results]
        for at, tensor in enumerate(tensors):
            counts = numbers[at if at < last else last]
            if type(tensor) is np.ndarray and not counts:
                key += (tensor.dtype, tensor.shape if sized else tensor.ndim)
            elif tensor is None:
                key.append(None)
            elif isinstance(tensor, np.generic) and not counts:
                key += (tensor.dtype, () if sized else 0)
            elif counts and isinstance(tensor, _NUMBERS):
                key.append((tensor.dtype, _plain(tensor)) if isinstance(tensor, np.ndarray) else _plain(tensor))
            else:
                return None
        key.append(_ATTRIBUTES)
        for name, value in attributes.items():
            if value is not None:
                kind = type(value)
                if isinstance(value, float) and not (value < 0 or value > 0):
                    value = Exact(value)  # two zeros are equal, and NaN is not itself
                key += (name, kind, value) if kind in _SCALARS else (name, _plain(value))
        return tuple(key)

    def _found(
        self, tensors: Sequence[object], attributes: Mapping[str, object], results: int | None
    ) -> tuple[_Form, Sequence[object]]:
        from opgen.spec.generic import depends_on_sizes
        from opgen.spec.syntax.nodes import StaticDecl as Static

        module = self.library.module()
        generic = next(g for g in module.generics if g.name == self.name)
        checks = Checks(self.name)
        decls = {a.name.name: a for a in generic.attrs}
        attributes = {n: _settled(checks, decls[n], v) if n in decls else v for n, v in attributes.items()}
        if results is not None and (isinstance(results, bool) or not isinstance(results, int)):
            raise checks.wrong_type("results", "an integer", results)
        if results is not None and results.bit_length() > 64:
            raise checks.wrong("results", "an integer of 64 bits", results)
        self._numbers = tuple(isinstance(i, Static) for i in generic.inputs)
        self._sized = depends_on_sizes(generic)
        given = list(tensors)
        while given and given[-1] is None:
            given.pop()
        arguments = _arguments(generic, given)
        key = (Exact(tuple(arguments)), _frozen(attributes), results)
        found = self._forms.get(key) if key[1] is not None else None
        if found is None:
            found = self._made(arguments, attributes, results)
            if key[1] is not None:
                _keep(self._forms, key, found)
        return found, given

    def _made(
        self, arguments: Sequence[Argument | None], attributes: Mapping[str, object], results: int | None
    ) -> _Form:
        """Return the form of calls with such arguments."""
        from opgen.spec.call.arguments import CallError, CallTypeError
        from opgen.spec.generic import instance

        module = self.library.module()
        try:
            made = instance(module, self.name, arguments, attributes, results)
        except CallTypeError as error:
            raise ArgumentTypeError(error.op, error.argument, error.expected, error.given) from None
        except CallError as error:
            raise ArgumentValueError(error.op, error.argument, error.expected, error.given) from None
        attrs = {a.name for a in made.op.attrs}
        values = tuple(made.attributes[n] for n in made.op.signature if n in attrs)
        as_given = len(made.inputs) if made.inputs == tuple(range(len(made.inputs))) else -1
        function = self._function(module, made)
        operator: Operator = function.__globals__["_library"].operators[made.op.name]
        operator.again = (_operator, (self.library, self.name, arguments, attributes, results))
        return _Form(function, made.inputs, values, as_given)

    def operator(
        self, arguments: Sequence[Argument | None], attributes: Mapping[str, object], results: int | None
    ) -> Operator:
        """Return the operator of the plain op of calls with such arguments."""
        operators = self._made(arguments, attributes, results).function.__globals__["_library"].operators
        found: Operator = next(iter(operators.values()))
        return found

    def _function(self, module: Module, made: Instance) -> Function:
        """Return the function of a plain op, made once."""
        if made.op not in self._functions:
            from opgen.bindings.python.live import module_of

            arguments = {i.name for i in made.op.inputs} | {a.name for a in made.op.attrs}
            own = replace(made.op, signature=tuple(n for n in made.op.signature if n in arguments))
            single = replace(module, ops=(own,), functions=made.functions, doc=own.doc, generics=(), versions=())
            live = module_of(single, f"{self.name}, for the ranks of a call")
            functions = [f for n, f in vars(live).items() if callable(f) and n.rstrip("_") == own.function_name]
            _keep(self._functions, made.op, functions[0])
        self._functions.move_to_end(made.op)
        return self._functions[made.op]


def _generic(library: Library, name: str) -> object:
    """Return a generic op that was pickled."""
    return library.generics[name]


def _operator(library: Library, name: str, *call: Any) -> object:
    """Return the operator of a form that was pickled."""
    return library.generics[name].operator(*call)


def _keep(kept: OrderedDict[Any, Any], key: object, value: object) -> None:
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _frozen(attributes: Mapping[str, object]) -> object:
    """Return attributes as a part of a key; None if they cannot be one."""
    found = tuple((n, _plain(v)) for n, v in attributes.items() if v is not None)
    return found if _hashable(found) else None


def _hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _plain(value: object, deep: int = DEEP) -> object:
    """Return a value as a part of a key: one that cannot be hashed if it is too long, or too deep."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist() if value.size <= MOST else []
    if not isinstance(value, list | tuple):
        return type(value).__name__, Exact(value) if isinstance(value, float) else value
    kinds = tuple(map(type, value))
    if _SCALARS.issuperset(kinds):
        return kinds, Exact(tuple(value)) if float in kinds else tuple(value)
    return tuple(_plain(v, deep - 1) for v in value) if deep else []


def _settled(checks: Checks, decl: AttrDecl, value: object) -> object:
    """Return the value of an attribute in plain numbers, words and lists of them, which nest no deeper than it does."""
    kind, argument = decl.type.kind.name, decl.name.name
    if value is None or (kind == "type" and not isinstance(value, int)):
        return value
    one = {"int": "an integer", "int64": "an integer", "float": "a number", "bool": "true or false"}.get(kind, "a word")
    expected = f"a list, each {one}" if decl.type.shape else one
    lists = 2 if decl.type.words and not decl.type.shape else len(decl.type.shape)  # a list may stand for a word

    def plain(item: object, deep: int) -> object:
        if isinstance(item, np.ndarray) and item.size > MOST:
            raise checks.wrong(argument, f"at most {MOST} numbers", item)
        if not isinstance(item, type) and hasattr(item, "tolist"):
            item = item.tolist()
        if isinstance(item, list | tuple) and deep >= 0:
            return [plain(v, deep - 1) for v in item]
        if not isinstance(item, bool | float | str) and not (isinstance(item, int) and item.bit_length() <= 64):
            raise checks.wrong_type(argument, expected, value)
        return item

    return plain(value, lists - 1)


# Arguments ------------------------------------------------------------------------------------------


def _arguments(op: GenericOp, given: list[object]) -> list[Argument | None]:
    """Return the form's arguments by a call's tensors.

    Lists take the type of the first other tensor of their type variable.
    """
    from opgen.spec.generic import Argument, known_sizes
    from opgen.spec.syntax import nodes as s

    checks = Checks(op.name)
    decls = list(op.inputs)
    types: dict[str, str] = {}
    found: list[tuple[str, str, int, tuple[int | None, ...]] | Argument | None] = []
    for at, value in enumerate(given):
        decl = decls[min(at, len(decls) - 1)] if decls else None
        if value is None or decl is None:
            found.append(None)
        elif isinstance(decl, s.StaticDecl):
            found.append(_static(checks, decl, value))
        else:
            dtype = "int32" if isinstance(decl, s.SizesDecl) else decl.dtype.name
            name, rank = _kind(checks, decl.name.name, value)
            if name:
                types.setdefault(dtype, name)
            sizes = known_sizes(op, at, np.shape(value) if isinstance(value, list | tuple) else _shape(value))
            found.append((dtype, name, rank, sizes))
    allowed = {i.name.name: [_canonical(n.name) for n in i.allowed] for i in op.decl.items if isinstance(i, s.TypeDecl)}
    return [
        Argument(f[1] or types.get(f[0]) or _default(f[0], allowed), f[2], sizes=f[3]) if isinstance(f, tuple) else f
        for f in found
    ]


def _canonical(name: str) -> str:
    dtype = lookup(name)
    return name if dtype is None else dtype.name


def _default(dtype: str, allowed: Mapping[str, list[str]]) -> str:
    """Return the type of lists of a type variable that no array determines."""
    if dtype not in allowed:
        return _canonical(dtype)
    return "float32" if "float32" in allowed[dtype] else allowed[dtype][0]


def _kind(checks: Checks, argument: str, value: object) -> tuple[str, int]:
    """Return the type of a tensor (empty for a list of numbers, which has none yet), and its rank."""
    if isinstance(value, Symbol):
        return value.dtype.name, value.ndim
    if is_device_array(value):
        shape = getattr(value, "shape", ())
        return np.dtype(str(getattr(value, "dtype", "float32")).rpartition(".")[2]).name, len(shape)
    array = checks.as_array(argument, value)
    if array is not None:
        return native(array.dtype).name, array.ndim
    if are_bools(value):
        return "bool", checks.from_list(argument, value, "bool").ndim
    return "", checks.from_list(argument, value, "float64").ndim


def _shape(value: object) -> tuple[object, ...]:
    return tuple(getattr(value, "shape", ()))


def _static(checks: Checks, decl: StaticDecl, value: object) -> Argument:
    """Return numbers whose values count, as an argument."""
    from opgen.spec.generic import Argument

    argument, floats = decl.name.name, decl.dtype.name not in ("int32", "int64", "bool")
    if isinstance(value, Symbol):
        raise ArgumentValueError(checks.op, argument, "numbers that are known before the call runs", "a symbol")
    array = checks.as_array(argument, value)
    if array is None:
        try:
            array = np.array(value)
        except (ValueError, OverflowError) as error:
            raise checks.wrong(argument, "a nested list of equal lengths", value) from error
        except TypeError as error:
            raise checks.wrong_type(argument, "numbers" if floats else "integers", value) from error
    if array.size and array.dtype.kind not in ("iuf" if floats else "iub"):
        raise checks.wrong_type(argument, "numbers" if floats else "integers", value)
    values = np.ravel(array).astype(np.float64 if floats else np.int64).tolist()
    return Argument("float32" if floats else "int64", array.ndim, tuple(values) if array.ndim else values[0])
