"""The declaration of a step: a frozen class with typed fields.

    @primitive("loops", "own i 64 -> i_owner")
    class Own(Step):
        loop: LoopName
        owners: int
        name: Annotated[str, Made("{loop}_owner")]

        def run(self, kernel: Kernel) -> Kernel:
            return own(kernel, self.loop, self.owners, self.name)

The step's text and its parser are derived from the declaration.  So are the part of a kernel that it concerns, its
variations and its row in the page of all steps (`specs/SCHEDULES.md`).  In the text, arguments come first, in the order
of the fields, then options, then, after an arrow, the new names.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from opgen.diagnostics import Span
from opgen.loop.nodes import Kernel
from opgen.schedule.values import Loop, Made, Number, OneOf, Truth, Value, Word

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """Return a decorator that only type checkers interpret."""
        return lambda f: f


Target: TypeAlias = Literal["cpu", "cuda"]
Group: TypeAlias = Literal["loops", "sums", "memory"]
"""The tables of the page of all steps."""


@dataclass(frozen=True)
class Option:
    """Mark of a field that is written `name=word`."""

    default: str | None = None
    """The word that it has if the text gives none."""
    lacks: str | None = None
    """The missing part that an error message names; None if the option can be left out."""
    name: str | None = None
    """The name, if it is not the field's."""
    quiet: bool = False
    """True if the default is not printed."""


@dataclass(frozen=True)
class Varied:
    """Mark of a field for which tuning tries other values: `others` maps a value to its alternatives."""

    others: Callable[[Any], Iterable[object]]


@dataclass(frozen=True)
class Step(ABC):
    """A step of a schedule.  Prints as a line and runs as a function from kernel to kernel."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """The place in the text that the step was read from."""

    command: ClassVar[str]
    """The word that its text begins with."""
    group: ClassVar[Group]
    examples: ClassVar[tuple[str, ...]]
    moves_past: ClassVar[bool]
    """True if it moves statements past others, and so must see all of a kernel."""
    reorders_sums: ClassVar[bool]
    """True if it adds up in another order, the same for any number of threads."""
    only: ClassVar[Target | None]

    @abstractmethod
    def run(self, kernel: Kernel) -> Kernel:
        """Return the kernel after the step; raises ScheduleError if it is illegal."""

    @property
    def target(self) -> Target | None:
        """The only kind of target that can run it; None if all can."""
        return self.only

    def __str__(self) -> str:
        return form_of(type(self)).text(self)


S = TypeVar("S", bound=Step)

PRIMITIVES: dict[str, type[Step]] = {}
"""All classes of steps, by the word that their text begins with."""


@dataclass_transform(frozen_default=True)
def primitive(
    group: Group,
    *examples: str,
    target: Target | None = None,
    moves_past: bool = False,
    reorders_sums: bool = False,
) -> Callable[[type[S]], type[S]]:
    """Register a class of steps, a frozen dataclass, by its name in lower case with underscores.

    The page of all steps has its examples and docstring in a table of a group.
    """

    def declared(cls: type[S]) -> type[S]:
        cls.command = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        cls.group, cls.examples, cls.only = group, examples, target
        cls.moves_past, cls.reorders_sums = moves_past, reorders_sums
        PRIMITIVES[cls.command] = cls
        return dataclass(frozen=True)(cls)

    return declared


@dataclass(frozen=True)
class Field:
    """A field of a step: the type of its values, and its place in the text."""

    name: str
    value: Value
    many: bool = False
    """True if it is a tuple of such values."""
    optional: bool = False
    """True if it may have no value."""
    option: Option | None = None
    varied: Varied | None = None

    @property
    def key(self) -> str:
        """The name of the option."""
        return self.name if self.option is None or self.option.name is None else self.option.name

    @property
    def default(self) -> str | None:
        """Its text if none is given, with the values of other fields in braces."""
        if isinstance(self.value, Made):
            return self.value.default
        return None if self.option is None else self.option.default

    @property
    def is_unnamed(self) -> bool:
        """True if it stays without a value unless the text gives it one."""
        return not (self.many or self.optional) and self.default is None

    @property
    def usage(self) -> str:
        """Usage text of the field."""
        if self.many:
            return f"{self.value.usage}, {self.value.usage}, ..."
        if self.option is None:
            return self.name.upper()
        return f"{self.key}={self.value.usage or self.name.upper()}"

    def of(self, step: Step) -> tuple[Any, ...]:
        """Return a step's values of this field: one, several or none."""
        value = getattr(step, self.name)
        return value if self.many else () if value is None else (value,)

    def read(self, words: Sequence[Word]) -> object:
        """Return the value that words give; raises ScheduleError with the place of the wrong one."""
        values = tuple(self.value.read(word, self.name) for word in words)
        return values if self.many else values[0]

    def text(self, step: Step) -> str:
        """Return the text of the values of a step."""
        shown = ", ".join(map(self.value.show, self.of(step)))
        if self.option is None:
            return shown
        return f"{self.key}={shown}" if shown and not (self.option.quiet and shown == self.option.default) else ""


@dataclass(frozen=True)
class Form:
    """The parts of a step's text, as its fields are declared."""

    command: str
    arguments: tuple[Field, ...]
    options: tuple[Field, ...]
    made: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields."""
        return (*self.arguments, *self.options, *self.made)

    @property
    def usage(self) -> str:
        """Usage text of the step."""
        arguments, options, made = ([f.usage for f in p] for p in (self.arguments, self.options, self.made))
        return self._line(arguments, options, made)

    def text(self, step: Step) -> str:
        """Return the text of a step."""
        arguments, options, made = ([f.text(step) for f in p] for p in (self.arguments, self.options, self.made))
        return self._line(arguments, options, made)

    def names(self, step: Step, kinds: type[Value] | UnionType) -> Iterator[str]:
        """Yield the names of some kinds (loops, buffers, new names) in a step."""
        for f in self.fields:
            if isinstance(f.value, kinds):
                yield from f.of(step)

    def _line(self, arguments: Sequence[str], options: Sequence[str], made: Sequence[str]) -> str:
        text, before = self.command, None
        for f, shown in zip(self.arguments, arguments, strict=True):
            text += f", {shown}" if isinstance(f.value, Loop) and isinstance(before, Loop) else f" {shown}"
            before = f.value
        names = ", ".join(filter(None, made))
        return " ".join([text, *filter(None, options)]) + (f" -> {names}" if names else "")


@cache
def form_of(cls: type[Step]) -> Form:
    """Return the form of a class of steps."""
    hints = get_type_hints(cls, include_extras=True)
    fields = [_field(f.name, hints[f.name]) for f in dataclasses.fields(cls) if f.name != "span"]
    made = tuple(f for f in fields if isinstance(f.value, Made))
    options = tuple(f for f in fields if f.option is not None)
    return Form(cls.command, tuple(f for f in fields if f not in (*made, *options)), options, made)


def _field(name: str, hint: object) -> Field:
    """Return the field of an annotation: a type within any of `Annotated`, `X | None` and `tuple[X, ...]`."""
    many, optional, marks = False, False, []
    while (origin := get_origin(hint)) not in (None, Literal):
        hint, *rest = get_args(hint)
        many |= origin is tuple
        optional |= NoneType in rest
        marks += rest if origin is Annotated else []
    plain = Truth() if hint is bool else Number() if hint is int else OneOf(get_args(hint))
    value: Value = next((m for m in marks if isinstance(m, Value)), plain)
    option = next((m for m in marks if isinstance(m, Option)), None)
    varied = next((m for m in marks if isinstance(m, Varied)), None)
    return Field(name, value, many, optional, option, varied)
