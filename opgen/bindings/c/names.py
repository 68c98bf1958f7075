"""The public names of an op in C: of its functions, its attributes' struct and fields, and its arguments.

The generated C, and every binding that is made over the C library, take them from here.
"""

from __future__ import annotations

from opgen.bindings.c.text import Names
from opgen.spec.model import Attr, OpSpec

RESERVED = ("attrs", "workspace", "workspace_size", "size")
"""Parameters that every op's functions have beside its tensors."""

LOCALS = ("call", "op", "m", "math", "standard", "apart", "buffers", "memory")
"""Variables of the functions that have an op's tensors for parameters."""


class OpNames:
    """`prefix` is the library's, `nn_ops` for what begins `PREFIX_FUNCTION`."""

    def __init__(self, op: OpSpec, prefix: str) -> None:
        self.function = f"{prefix}_{op.function_name}"
        self.shape = f"{self.function}_shape"
        self.workspace = f"{self.function}_workspace"
        self.with_workspace = f"{self.function}_with_workspace"
        self.attrs = f"{self.function}_attrs"
        self.attrs_default = f"{self.attrs}_default"
        fields = Names()
        self.fields: dict[str, str] = {}
        self.lengths: dict[str, str] = {}
        for attr in op.attrs:
            for name in (attr.name, *([attr.alias] if attr.alias else [])):
                self.fields[name] = fields.fresh(name)
                if attr.shape:
                    self.lengths[name] = fields.fresh(f"{name}_len")
        arguments = Names((*RESERVED, *LOCALS))
        self.inputs = {i.name: arguments.fresh(i.name) for i in op.inputs}
        self.outputs = {o.name: arguments.fresh(o.name) for o in op.outputs}


def spellings(attr: Attr) -> tuple[str, ...]:
    """The attribute's name, and its alias if it has one."""
    return (attr.name,) if attr.alias is None else (attr.name, attr.alias)
