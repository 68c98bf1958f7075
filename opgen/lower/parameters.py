"""The scalar parameters of a kernel, collected while its body is made."""

from __future__ import annotations

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT64, INT64
from opgen.loop.nodes import Parameter, Var
from opgen.lower.names import parameter_name
from opgen.spec.model.bounds import bounds
from opgen.spec.model.model import AttrValue, Expr, OpSpec, Present, SizeOf, Symbol, Tensor


class Parameters:
    """Each distinct value of the shape language that a kernel needs becomes one parameter, computed by the caller."""

    def __init__(self, op: OpSpec) -> None:
        self._op = op
        self._found: dict[Expr, Parameter] = {}
        self._sizes = _dimension_symbols(op)

    def variable(self, e: Expr) -> Var:
        """Return the variable of a symbol, an attribute element, a size or the result of a shape function."""
        if e not in self._found:
            self._found[e] = self._parameter(e)
        return self._found[e].var

    def is_size(self, e: Expr) -> bool:
        """Return True for the size of a dimension, which is not negative."""
        return isinstance(e, SizeOf) or (isinstance(e, Symbol) and e.name in self._sizes)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(self._found.values())

    @property
    def values(self) -> tuple[Expr, ...]:
        """Return the values that the caller passes for the parameters, in order."""
        return tuple(self._found)

    def _parameter(self, e: Expr) -> Parameter:
        name, taken = parameter_name(self._op, e), {p.name for p in self._found.values()}
        while name in taken:
            name += "_"
        match e:
            case Symbol():
                return Parameter(name, INT64, 0 if e.name in self._sizes else None)
            case SizeOf():
                return Parameter(name, INT64, 0)
            case AttrValue():
                return self._attribute(name, e)
            case Present():
                return Parameter(name, BOOL)
        return Parameter(name, INT64)

    def _attribute(self, name: str, e: AttrValue) -> Parameter:
        attr = self._op.attr(e.attr)
        match attr.kind:
            case "int":
                low, high = bounds(attr)
                return Parameter(name, INT64, int(low), int(high))
            case "float":
                return Parameter(name, FLOAT64)
            case "bool":
                return Parameter(name, BOOL)
        raise InternalError(f"attribute {attr.name!r} of kind {attr.kind} is no scalar of the mathematics")


def _dimension_symbols(op: OpSpec) -> frozenset[str]:
    """Return the symbols that are sizes of a dimension, and so are not negative."""
    tensors: tuple[Tensor, ...] = (*op.tensors, *op.outputs)
    names: set[str] = set()
    for tensor in tensors:
        for dim in tensor.dims:
            names |= {f for f in dim.factors if isinstance(f, str)}
            if isinstance(dim.size, Symbol):
                names.add(dim.size.name)
    for sizes in op.inputs:
        if not isinstance(sizes, Tensor):
            names |= {f for form in sizes.forms for dim in form for f in dim.factors if isinstance(f, str)}
    return frozenset(names)
