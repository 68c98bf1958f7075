"""A model before the types and shapes of its inputs are known: calls of ops, by name.

An imported file and a captured function are models.  `opgen.graph.build.resolve` makes a graph of one for given inputs.  A
call may be of a generic op, whose ranks and number of inputs are open; its attributes are as the source has them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from opgen.graph.ir.values import Data, Outline
from opgen.graph.ir.values import Input as Input
from opgen.graph.ir.values import Size as Size
from opgen.spec.model.model import Module

Attribute: TypeAlias = "int | float | bool | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Data | Model"
"""What a source gives an attribute: numbers, words, lists of them, a tensor, or a model that runs inside."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an op of a module.

    `inputs` and `outputs` are names of values; None stands for an optional one that is left out.  `origin` says where
    it stands in the source, for messages.  `counted` are attributes that are elements of values, with their names.
    """

    name: str
    module: Module = field(repr=False)
    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: Mapping[str, Attribute]
    origin: str = field(default="", compare=False)
    counted: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """One of two models, by a condition of one element; its results are theirs, in order.

    The models have no inputs: what they take from around them stands in their `outer`.  Names of values are unique in
    the whole model, those inside its branches among them.
    """

    name: str
    condition: str
    then: Model
    otherwise: Model
    outputs: tuple[str | None, ...]
    origin: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Along:
    """How tensors are taken apart in slices, or slices put together: along an axis, which counts from the end if it is
    negative, the first slice first or (`backward`) last.
    """

    axis: int = 0
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A model that is run again and again, `most` times at most, and never if `condition` is false; both are names.

    `given` are the names of what each run is given, in order: if the runs are `counted`, the number of the run (from
    0) and the condition; then the `states`, which are before the first run the values of these names; then slices of
    the values that `sliced` names.  The results of a run are, in order, the condition of the next (if they are
    counted; it counts for nothing without a `condition` of the first), the states after it, and what is put together
    of all runs, as `joined` says.  Results of the whole are the last states and what is put together.  Runs that are
    not counted are as many as there are slices.
    """

    name: str
    body: Model
    given: tuple[str, ...]
    counted: bool
    most: str | None
    condition: str | None
    states: tuple[str, ...]
    sliced: tuple[tuple[str, Along], ...]
    joined: tuple[Along, ...]
    outputs: tuple[str | None, ...]
    origin: str = field(default="", compare=False)


Step: TypeAlias = "Call | Branch | Repeat"
"""What a model is made of."""


@dataclass(frozen=True, slots=True)
class Model:
    """`calls` stand in an order in which each comes after those whose results it takes.  `source` says where the model
    came from.  `outer` are names of values that a model inside another takes from around it.  `defaults` are inputs
    for which constants of their names stand.
    """

    name: str
    inputs: tuple[Input, ...]
    constants: Mapping[str, Data]
    calls: tuple[Step, ...]
    outputs: tuple[str, ...]
    source: str = ""
    outer: tuple[str, ...] = ()
    defaults: tuple[Input, ...] = ()

    def taking(self, names: Collection[str]) -> Model:
        """Return the model whose `defaults` of these names are inputs, behind those that it has."""
        more = tuple(i for i in self.defaults if i.name in names)
        constants = {name: data for name, data in self.constants.items() if name not in names}
        rest = tuple(i for i in self.defaults if i.name not in names)
        return replace(self, inputs=(*self.inputs, *more), constants=constants, defaults=rest)

    @property
    def outline(self) -> Outline:
        """What callers know of it."""
        return Outline(self.name, self.inputs, self.outputs, len(self.calls), self.defaults)
