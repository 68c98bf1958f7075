"""Values that fill the templates of a program's library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from opgen.bindings.c.interface import MESSAGE_SIZE, Enumerator, Function, Interface, Struct, message_parameters
from opgen.bindings.c.text import one_line
from opgen.bindings.programs.features import CpuidBits, needed
from opgen.bindings.programs.weights import HEADER, MAGIC, Weights
from opgen.codegen.llvm.target import Target
from opgen.dtypes import DType
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph, Node, Value
from opgen.graph.program.program import Program
from opgen.lower.element_words import words_of
from opgen.lower.elements import element_checks
from opgen.spec.call.environment import evaluate_int

_STORED = {"bool": "bool", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double"}
"""C types of elements that are not integers; those of memory alone are passed as bits."""

STATUSES = (
    Enumerator("OK", 0),
    Enumerator("INVALID_ARGUMENT", 1),
    Enumerator("NO_MEMORY", 2),
    Enumerator("WRONG_WEIGHTS", 3, "the file cannot be read, or belongs to another program"),
    Enumerator("WRONG_CPU", 4, "the code needs what this CPU does not have"),
    Enumerator("FAILED", 5, "a step of the program could not be done"),
    Enumerator("WRONG_ABI", 6, "the program was compiled with the header of another library"),
)
"""Status of a call."""


@dataclass(frozen=True)
class TensorView:
    """An input or an output: its name in C, that of its parameter, and its name as the model has it.

    A parameter says its role first, so that no keyword, macro, type or word of the library's own can be its name.
    """

    name: str
    parameter: str
    said: str
    type: str
    element: str
    shape: tuple[int, ...]
    count: int
    bytes: int

    @property
    def described(self) -> str:
        """Return text for a comment: `x: float32[1, 3]`."""
        return one_line(f"{self.said}: {self.type}[{', '.join(map(str, self.shape))}]")


@dataclass(frozen=True)
class CheckView:
    """A check of subscripts: the text before one that is outside, and the number added to it if it was negative."""

    said: str
    added: int


@dataclass(frozen=True)
class ProgramView:
    """Everything that the templates say; `checks` are those of each step's kernel, by their numbers."""

    prefix: str
    source: str
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    kernels: tuple[str, ...]
    steps: tuple[str, ...]
    checks: tuple[tuple[CheckView, ...], ...]
    offsets: tuple[int, ...]
    weights_bytes: int
    digest: tuple[int, ...]
    magic: tuple[int, ...]
    header: int
    arena: int
    part: int
    features: tuple[CpuidBits, ...]
    tiles: bool
    message_size: int = MESSAGE_SIZE
    statuses: tuple[Enumerator, ...] = STATUSES

    @property
    def macro(self) -> str:
        """Return the prefix of macros."""
        return self.prefix.upper()

    @property
    def tensors(self) -> tuple[TensorView, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def info(self) -> Struct:
        """Return the struct that describes a tensor."""
        fields = ("const char *name;", "const char *type;", "int32_t rank;", "const int64_t *shape;", "size_t bytes;")
        return Struct(f"{self.prefix}_tensor_info", fields)

    @property
    def functions(self) -> dict[str, Function]:
        """Return the functions that the library exports, without the prefix."""
        info, status, number = f"const {self.info.name} *", f"{self.prefix}_status", ("int32_t number",)
        model, message = f"const {self.prefix}_model *model", message_parameters()
        opened = (
            "uint64_t version",
            "const char *weights",
            "int32_t threads",
            f"{self.prefix}_model **model",
            *message,
        )
        given = (f"const {t.element} *{t.parameter}" for t in self.inputs)
        written = (f"{t.element} *{t.parameter}" for t in self.outputs)
        found: dict[str, tuple[str, tuple[str, ...]]] = {
            "abi_version": ("uint64_t", ()),
            "input": (info, number),
            "output": (info, number),
            "open_checked": (status, opened),
            "close": ("void", (f"{self.prefix}_model *model",)),
            "workspace_bytes": ("size_t", (model,)),
            "run": (status, (model, "void *workspace", *given, *written, *message)),
        }
        return {name: Function(result, f"{self.prefix}_{name}", taken) for name, (result, taken) in found.items()}

    @property
    def interface(self) -> Interface:
        """Return all that callers are compiled against."""
        numbers = (Enumerator("MESSAGE_SIZE", self.message_size), *self.statuses)
        tensors = tuple(f"{t.name}: {t.type}{list(t.shape)}" for t in self.tensors)
        return Interface(numbers, (self.info,), tuple(self.functions.values()), tensors)


def program_view(
    program: Program, graph: Graph, weights: Weights, prefix: str, source: str, target: Target
) -> ProgramView:
    """Return the view of a program; `source` says for readers which model it is."""
    names = [*distinct(v.name for v in (*program.inputs, *program.outputs))]
    first = len(program.inputs)
    return ProgramView(
        prefix=prefix,
        source=one_line(source),
        inputs=tuple(_tensor(v, n, "in") for v, n in zip(program.inputs, names[:first], strict=True)),
        outputs=tuple(_tensor(v, n, "out") for v, n in zip(program.outputs, names[first:], strict=True)),
        kernels=tuple(k.symbol for k in program.kernels),
        steps=tuple(f"node '{graph.nodes[i].name}' ({graph.nodes[i].op.spec.name})" for i in program.nodes),
        checks=tuple(tuple(_checks(graph, graph.nodes[i])) for i in program.nodes),
        offsets=weights.offsets,
        weights_bytes=weights.length,
        digest=tuple(weights.digest),
        magic=tuple(MAGIC),
        header=HEADER,
        arena=program.arena,
        part=program.part,
        features=needed(target),
        tiles=target.has_tiles,
    )


def _checks(graph: Graph, node: Node) -> Iterator[CheckView]:
    """Yield the checks of a node's op, in the words that Python has for them."""
    found = element_checks(node.op.spec)
    for check in found:
        words, size = words_of(node.op.spec, check), evaluate_int(check.size, bound(graph, node).environment)
        said = f"argument '{words.argument}': expected {words.expected(size)}, given {words.lead}"
        yield CheckView(said, size if words.wraps else 0)


def element_type(dtype: DType) -> str:
    """Return the C type that holds an element."""
    return "uint8_t" if dtype.is_bits else _STORED.get(dtype.name, f"{dtype.name}_t")


LONGEST = 64
"""Greatest number of letters of a name that represents a text."""


def identifier(text: str) -> str:
    """Return a name in C for any text, without an underscore at its ends, or two that are neighbours."""
    plain = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", text)).strip("_")[:LONGEST].rstrip("_")
    return plain if plain[:1].isalpha() else f"t_{plain}".rstrip("_")


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """Yield a name in C for each text, each once: one that is taken is numbered."""
    taken: set[str] = set()
    for text in texts:
        name = plain = identifier(text)
        number = 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        yield name


def _tensor(value: Value, name: str, role: str) -> TensorView:
    count = prod(value.shape)
    return TensorView(
        name,
        f"{role}_{name}",
        value.name,
        value.dtype.name,
        element_type(value.dtype),
        value.shape,
        count,
        count * value.dtype.bytes,
    )
