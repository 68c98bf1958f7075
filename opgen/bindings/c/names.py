"""The public names of an op in C: of its functions, its attributes' struct and fields, and its arguments.

The generated C, and every binding that is made over the C library, take them from here.
"""

from __future__ import annotations

from opgen.bindings.c.text import Names
from opgen.spec.model.model import Attr, OpSpec

RESERVED = ("attrs", "workspace", "workspace_size", "size", "message", "message_size")
"""Parameters that every op's functions have besides its tensors."""

LOCALS = ("call", "op", "m", "math", "standard", "ends", "apart", "buffers", "memory")
"""Variables of the functions that have an op's tensors for parameters."""

STRUCT_SIZE = "struct_size"
"""The first field of every struct of attributes."""


class OpNames:
    """Names of one op in C; `prefix` is the library's, `nn_ops` the part that begins `PREFIX_FUNCTION`."""

    def __init__(self, op: OpSpec, prefix: str) -> None:
        self.function = f"{prefix}_{op.function_name}"
        self.shape = f"{self.function}_shape"
        self.workspace = f"{self.function}_workspace"
        self.with_workspace = f"{self.function}_with_workspace"
        self.with_message = f"{self.function}_with_message"
        self.shape_with_message = f"{self.shape}_with_message"
        self.workspace_with_message = f"{self.workspace}_with_message"
        self.with_workspace_and_message = f"{self.with_workspace}_and_message"
        self.attrs = f"{self.function}_attrs"
        self.attrs_init = f"{self.attrs}_init"
        self.attrs_default = f"{self.attrs}_default"
        fields = Names((STRUCT_SIZE,))
        self.fields: dict[str, str] = {}
        self.lengths: dict[str, str] = {}
        for attr in op.attrs:
            for name in spellings(attr):
                self.fields[name] = fields.fresh(name)
                if has_length(attr):
                    self.lengths[name] = fields.fresh(f"{name}_len")
        arguments = Names((*RESERVED, *LOCALS))
        self.inputs = {i.name: arguments.fresh(i.name) for i in op.inputs}
        self.outputs = {o.name: arguments.fresh(o.name) for o in op.outputs}

    @property
    def functions(self) -> tuple[str, ...]:
        """Return every function of the op that the header declares, exported or not."""
        plain = (self.function, self.shape, self.workspace, self.with_workspace)
        told = (
            self.with_message,
            self.shape_with_message,
            self.workspace_with_message,
            self.with_workspace_and_message,
        )
        return (*plain, *told, self.attrs, self.attrs_init, self.attrs_default)


def has_length(attr: Attr) -> bool:
    """Return True if an attribute is passed as a pointer and a length: a list or a word."""
    return bool(attr.shape) or attr.kind in ("enum", "layout")


def spellings(attr: Attr) -> tuple[str, ...]:
    """Return the attribute's name, and its alias if it has one."""
    return (attr.name,) if attr.alias is None else (attr.name, attr.alias)
