"""Models inside a model: the values that they take from around them, and copies of them under other names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from opgen.graph.build.model import Branch, Call, Model, Repeat, Step
from opgen.graph.ir.values import Data

Name = TypeVar("Name", str, "str | None")


def models_of(step: Step) -> tuple[Model, ...]:
    """Return the models inside a step."""
    if isinstance(step, Branch):
        return step.then, step.otherwise
    return (step.body,) if isinstance(step, Repeat) else ()


def taken_by(step: Step) -> set[str]:
    """Return the names of all values that a step takes, models in it included."""
    found: set[str | None]
    if isinstance(step, Call):
        found = {*step.inputs, *(name for _, name in step.counted)}
    elif isinstance(step, Branch):
        found = {step.condition}
    else:
        found = {step.most, step.condition, *step.states, *(name for name, _ in step.sliced)}
    for model in models_of(step):
        found.update(model.outer)
    return {name for name in found if name is not None}


def made_in(model: Model) -> Iterator[str]:
    """Yield the names of all values that a model holds and makes, models in it included."""
    yield from model.constants
    for step in model.calls:
        yield from (name for name in step.outputs if name is not None)
        if isinstance(step, Repeat):
            yield from step.given
        for inner in models_of(step):
            yield from made_in(inner)


def part_of(
    name: str, steps: Iterable[Step], constants: Mapping[str, Data], outputs: Iterable[str], source: str
) -> Model:
    """Return the model of some steps.

    `constants` are all constants around it.  Other values that it takes become its `outer`.
    """
    steps, outputs = tuple(steps), tuple(dict.fromkeys(outputs))
    taken = {name for step in steps for name in taken_by(step)} | set(outputs)
    made = {name for step in steps for name in step.outputs}
    own = {name: data for name, data in constants.items() if name in taken}
    return Model(name, (), own, steps, outputs, source, tuple(sorted(taken - made - set(own))))


def renamed(model: Model, names: Mapping[str, str]) -> Model:
    """Return a model with some of its values renamed as `names` says."""

    def new(name: Name) -> Name:
        return names.get(name, name) if name is not None else name

    def step(old: Step) -> Step:
        outputs = tuple(map(new, old.outputs))
        if isinstance(old, Call):
            counted = tuple((attribute, new(name)) for attribute, name in old.counted)
            return replace(old, inputs=tuple(map(new, old.inputs)), outputs=outputs, counted=counted)
        if isinstance(old, Branch):
            then, otherwise = renamed(old.then, names), renamed(old.otherwise, names)
            return replace(old, condition=new(old.condition), then=then, otherwise=otherwise, outputs=outputs)
        return replace(
            old,
            body=renamed(old.body, names),
            given=tuple(map(new, old.given)),
            most=new(old.most),
            condition=new(old.condition),
            states=tuple(map(new, old.states)),
            sliced=tuple((new(name), along) for name, along in old.sliced),
            outputs=outputs,
        )

    return replace(
        model,
        constants={new(name): data for name, data in model.constants.items()},
        calls=tuple(map(step, model.calls)),
        outputs=tuple(map(new, model.outputs)),
        outer=tuple(map(new, model.outer)),
    )
