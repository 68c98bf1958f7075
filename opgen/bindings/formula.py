"""Parts of a model as a reader of specs knows them: for docstrings and documentation."""

from __future__ import annotations

from opgen.bindings.expressions import Printer
from opgen.spec.model.model import (
    Apply,
    AttrValue,
    BitCast,
    Conditional,
    Convert,
    Definition,
    Dimension,
    Element,
    EnumIs,
    FunctionCall,
    IndexRange,
    MultiplyAdd,
    OpSpec,
    Present,
    Read,
    Reduce,
    Scatter,
    ShapeLet,
    SizeOf,
    Tensor,
)
from opgen.spec.resolve.updates import layers, word_of


class Formula(Printer):
    """Expressions in the spec's own notation."""

    def __init__(self, op: OpSpec) -> None:
        self._op = op

    def number(self, value: int | float | bool) -> str:
        return str(value).lower() if isinstance(value, bool) else repr(value)

    def symbol(self, name: str) -> str:
        return name

    def word(self, value: str) -> str:
        return value

    def attribute(self, e: AttrValue) -> str:
        layout = self._op.attr(e.attr).layout
        if layout is None or not e.element:
            return e.attr + "".join(f"[{i}]" for i in e.element)
        letter = self._op.attr(layout).values[0][e.element[0]]
        return f"{e.attr}.{letter}" + "".join(f"[{i}]" for i in e.element[1:])

    def comparison_with_word(self, e: EnumIs) -> str:
        return f"{e.name} == {e.value}"

    def present(self, e: Present) -> str:
        return f"present({e.attr})"

    def size_of(self, e: SizeOf) -> str:
        return f"size({e.tensor}, {e.axis})"

    def conditional(self, e: Conditional) -> str:
        return f"if {self.text(e.condition)} then {self.text(e.if_true)} else {self.text(e.if_false)}"

    def call(self, e: FunctionCall) -> str:
        return f"{e.function}({', '.join(self.argument(a) for a in e.arguments)})"

    def mathematics(self, e: Apply | MultiplyAdd | Convert | BitCast | Read | Element | Reduce) -> str:
        match e:
            case Element():
                return f"{e.constant.name}[{', '.join(self.text(i) for i in e.indices)}]"
            case Apply():
                return f"{e.function}({self.text(e.argument)})"
            case MultiplyAdd():
                return f"fma({self.text(e.left)}, {self.text(e.right)}, {self.text(e.added)})"
            case Convert():
                return f"{e.to}({self.text(e.operand)})"
            case BitCast():
                return f"bit_cast({e.to}, {self.text(e.operand)})"
            case Read():
                read = f"{e.tensor}[{', '.join(self.text(i) for i in e.indices)}]"
                return read if e.outside is None else f"({read} else {self.text(e.outside)})"
            case Reduce():
                condition = "" if e.condition is None else f" if {self.text(e.condition)}"
                place = "" if e.place is None else f", {self.text(e.place)}"
                return f"{e.kind}[{', '.join(r.name for r in e.indices)}{condition}]({self.text(e.body)}{place})"

    def definition(self, d: Definition) -> str:
        """`output[i, j] = ...`."""
        start, updates = layers(d.value)
        first = f"{d.tensor}[{', '.join(self.text(s) for s in d.subscripts)}] = {self.text(start)}"
        return "; then ".join([first, *(self._update(d.tensor, u) for u in updates)])

    def _update(self, tensor: str, e: Scatter) -> str:
        """`output[ids[i], j] add= ...`."""
        condition = "" if e.condition is None else f" if {self.text(e.condition)}"
        return f"{tensor}[{', '.join(self.text(i) for i in e.at)}] {word_of(e.kind)}= {self.text(e.body)}{condition}"

    def let(self, let: ShapeLet) -> str:
        """`out_height, top = window(...)`."""
        return f"{', '.join(let.names)} = {self.text(let.value)}"

    def ranges(self, indices: tuple[IndexRange, ...]) -> str:
        """`r < filter_height, s < filter_width`."""
        return ", ".join(f"{r.name} < {self.text(r.extent)}" for r in indices)

    def dimension(self, d: Dimension) -> str:
        size = " * ".join(str(f) for f in d.factors) if d.factors else self.text(d.size)
        return f"{size} | 1" if d.broadcast else size

    def tensor(self, t: Tensor) -> str:
        """`T[batch, height, width, channels]`."""
        return f"{t.dtype}[{', '.join(self.dimension(d) for d in t.dims)}]"
