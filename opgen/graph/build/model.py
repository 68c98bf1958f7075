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
"""Value of an attribute in a source: numbers, strings, lists of them, a tensor, or a model that runs inside."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an op of a module.

    `inputs` and `outputs` are names of values; None marks an omitted optional one.  `origin` is the place in the
    source, for messages.  `counted` are attributes that are elements of values, with the names of these values.
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
    """One of two models, chosen by a condition of one element; its results are theirs, in order.

    The models have no inputs: values that they take from around them are in their `outer`.  Names of values are unique
    in the whole model, including those inside its branches.
    """

    name: str
    condition: str
    then: Model
    otherwise: Model
    outputs: tuple[str | None, ...]
    origin: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Along:
    """Slicing of tensors, or joining of slices, along an axis.

    A negative axis counts from the end.  The first slice comes first, or last if `backward`.
    """

    axis: int = 0
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A model run repeatedly, at most `most` times, and never if `condition` is false; both are names of values.

    `given` are the names of the values that each run takes, in order:

    - if the runs are `counted`, the number of the run (from 0) and the condition;
    - the `states`, which before the first run are the values of these names;
    - slices of the values that `sliced` names.

    A run returns, in order, the condition of the next run (if runs are counted), the states after it, and the slices to
    join as `joined` says.  Without a `condition` for the first run, the condition that a run returns is ignored.  The
    results of the whole are the last states and the joined tensors.  Runs that are not counted are as many as there are
    slices.
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
"""Steps of a model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model: steps in order, each after the steps whose results it takes.

    `calls` are the steps.  `source` is the place that the model came from.  `outer` are names of values that a model
    inside another takes from around it.  `defaults` are optional inputs; constants of the same names hold their values.
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
        """Return the model whose `defaults` of these names are inputs, after its other inputs."""
        more = tuple(i for i in self.defaults if i.name in names)
        constants = {name: data for name, data in self.constants.items() if name not in names}
        rest = tuple(i for i in self.defaults if i.name not in names)
        return replace(self, inputs=(*self.inputs, *more), constants=constants, defaults=rest)

    @property
    def outline(self) -> Outline:
        """Return the part of the model that callers see."""
        return Outline(self.name, self.inputs, self.outputs, len(self.calls), self.defaults)
