"""Functions: operators that are written as others, by the model itself or by ONNX's own definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from opgen.onnx.package import onnx

Identifier: TypeAlias = "tuple[str, str, str]"
"""Domain, name and overload of a function."""


def domain(name: str) -> str:
    """Return a domain, the empty one for ONNX's own, which has two names."""
    return "" if name == "ai.onnx" else name


def local_functions(proto: Any) -> dict[Identifier, Any]:
    """Return the functions that a model brings with it."""
    return {(domain(f.domain), f.name, getattr(f, "overload", "")): f for f in proto.functions}


def opsets(imports: Sequence[Any]) -> dict[str, int]:
    """Return the version of each domain that operators are taken from."""
    return {domain(i.domain): i.version for i in imports}


def schema_of(name: str, version: int, of: str) -> Any | None:
    """Return ONNX's definition of an operator, or None."""
    defs = onnx().defs
    if not 0 < version < 1 << 31:
        return None
    try:
        return defs.get_schema(name, version, of)
    except defs.SchemaError:
        return None


def takes_sequences(schema: Any) -> bool:
    """Return True if one of an operator's inputs can only be a sequence of tensors."""
    return any(all(kind.startswith("seq(") for kind in i.types) for i in schema.inputs)


def defined_function(node: Any, version: int, of: str, types: Sequence[Any | None]) -> Any | None:
    """Return the function that ONNX defines for an operator, for this node, or None.

    `types` are the types of the node's inputs as far as they are known; some functions depend on them.
    """
    schema = schema_of(node.op_type, version, of)
    if schema is None or takes_sequences(schema):
        return None
    if schema.has_function:
        return schema.function_body
    versions = schema.context_dependent_function_opset_versions
    if not versions:
        return None
    fitting = max((v for v in versions if v <= version), default=min(versions))
    given = [b"" if t is None else t.SerializeToString() for t in types]
    try:
        body = schema.get_context_dependent_function_with_opset_version(fitting, node.SerializeToString(), given)
        return onnx().FunctionProto.FromString(body) if body else None
    except Exception:  # foreign code on a node that nobody has checked: whatever it says, there is no function
        return None


def bound_attributes(function: Any, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a body may refer to: the call's, else defaults of the function, or others'."""
    own = {a.name: a for a in function.attribute_proto}
    names = {*function.attribute, *own}
    return {**defaults, **own, **{name: value for name, value in given.items() if name in names or name in defaults}}


def defaults_of(name: str, version: int, of: str) -> dict[str, Any]:
    """Return the defaults of the attributes of an operator of ONNX."""
    schema = schema_of(name, version, of)
    known = {} if schema is None else schema.attributes
    return {name: a.default_value for name, a in known.items() if a.default_value.type}


class Types:
    """The types of values as far as ONNX's own rules determine them, for functions that depend on them."""

    def __init__(self, ir_version: int) -> None:
        self.known: dict[str, Any] = {}
        self._ir_version = ir_version

    def infer(self, node: Any, version: int, of: str) -> None:
        """Notes the types of a node's results; `node` has names that are unique in the model."""
        schema = schema_of(node.op_type, version, of)
        if schema is None:
            return
        given = {name: self.known[name] for name in node.input if name in self.known}
        try:
            found = onnx().shape_inference.infer_node_outputs(schema, node, given, ir_version=self._ir_version)
        except Exception:  # foreign code on a node that nobody has checked: whatever it says, the types stay unknown
            return
        self.known.update(found)
