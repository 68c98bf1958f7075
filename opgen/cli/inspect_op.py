"""An op on the command line: found among specs, its call read as a request for a kernel, its algorithms listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from opgen import files
from opgen.cli.options import spec_files
from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.cli.arguments import Arguments
    from opgen.cli.forms import Given
    from opgen.codegen.llvm.target import Target
    from opgen.compiler.artifact import Artifact, Stage
    from opgen.compiler.request import Compilation, Cuda
    from opgen.schedule.declaration import Target as Kind
    from opgen.schedule.schedule import Schedule
    from opgen.spec.model.model import GenericOp, Module, OpSpec


DEFINITION = "definition"
"""The word for an op's definition where algorithms are named."""


def request(
    module: Module, spec: OpSpec, arguments: Arguments, target: str | None, schedule: Schedule | None
) -> Compilation:
    """Return the request for a kernel; `target` None means a CUDA device."""
    from opgen.compiler.algorithms import mode
    from opgen.compiler.request import Compilation, OpVariant
    from opgen.lower import variant_of
    from opgen.spec import solve

    call = None
    if arguments.shapes or arguments.sizes:
        call = solve(spec, module, arguments.shapes, arguments.sizes, arguments.attrs)
    words = {name: value for name, value in (call.attrs if call else arguments.attrs).items() if isinstance(value, str)}
    variant = variant_of(spec, arguments.types, words)
    if call is None:
        arguments.refuse_beyond(variant.values)
    source = OpVariant(module, spec, variant)
    return Compilation(source, target_of(target), call, algorithms=mode(), schedule=schedule or "tuned")


def target_of(name: str | None) -> Target | Cuda:
    """Return the CPU of that name, None: a CUDA device."""
    from opgen.compiler import toolchain
    from opgen.compiler.request import Cuda

    return Cuda() if name is None else toolchain.target(name)


def by_algorithm(found: Compilation, name: str) -> Compilation:
    """Return the request for an algorithm of the op or its definition; refuse algorithms that do not apply."""
    from opgen.compiler.choose import definition_of, takes
    from opgen.compiler.request import Cuda, OpVariant

    source = found.source
    assert isinstance(source, OpVariant)
    known = {a.name: a for a in source.op.algorithms}
    if name == DEFINITION:
        return definition_of(found)
    if name not in known:
        hint = did_you_mean(name, [*known, DEFINITION]) or f"it has {', '.join([*known, DEFINITION])}"
        raise UserError(f"--algorithm {name}: '{source.op.name}' has no such algorithm; {hint}")
    if isinstance(found.target, Cuda):
        raise UserError(f"--algorithm {name}: algorithms are for CPUs")
    if not takes(known[name], source.variant.types, found.call):
        raise UserError(f"--algorithm {name} is not for these types, shapes and attributes; see --algorithms")
    return replace(found, algorithm=name)


def text(found: Artifact, stage: str) -> str:
    """Return an artifact at a stage, among which here is its cost."""
    if stage == "cost":
        from opgen.runtime.measuring.costs import cost_of

        return f"{cost_of(found)}\n"
    return found.text(cast("Stage", stage))


def choice_note(op: OpSpec, found: Artifact) -> str:
    """Return the algorithm that calls take and the reason; empty for ops that have only their definition."""
    from opgen.compiler.request import Cuda

    if not op.algorithms or found.request.call is None or isinstance(found.request.target, Cuda):
        return ""
    by = "its definition" if found.algorithm is None else f"the algorithm {found.algorithm}"
    return f"note: {op.name} is computed by {by}: {found.reason}"


def listing(op: OpSpec) -> str:
    """Return the algorithms of an op: name, types, condition and description of each."""
    from opgen.bindings.formula import Formula

    lines = [] if op.algorithms else [f"'{op.name}' is computed by its definition only."]
    for a in op.algorithms:
        types = ", ".join(f"{v.name} in {{{', '.join(t.name for t in v.allowed)}}}" for v in a.type_variables)
        condition = "" if a.condition is None else f" when {Formula(op).text(a.condition)}"
        lines.append(f"{a.name}{' (optional)' if a.optional else ''}: {types}{condition}")
        lines += [f"    {line}".rstrip() for line in a.doc.splitlines()]
    return "\n".join(lines) + "\n"


def find(name: str, specs: Path) -> tuple[Module, OpSpec | GenericOp]:
    """Return the op of that name, or whose function has it, in the spec files."""
    from opgen.grad import load

    modules = [load(path) for path in spec_files((specs,))]
    known: dict[str, tuple[Module, OpSpec | GenericOp]] = {}
    for found in modules:
        known |= {n: (found, g) for g in found.generics for n in (g.function_name, g.name)}
    for found in modules:
        known |= {n: (found, op) for op in found.ops for n in (op.function_name, op.name)}
    if name not in known:
        hint = did_you_mean(name, known) or f"it has {', '.join(sorted({op.name for _, op in known.values()}))}"
        raise UserError(f"{specs} has no op '{name}'; {hint}")
    return known[name]


def as_declared(op: OpSpec | GenericOp) -> str | None:
    """Return a generic op as its file has it; None for any other, which its artifact shows."""
    from opgen.compiler.artifact import source_lines
    from opgen.spec.model.model import GenericOp

    return source_lines(op.span) + "\n" if isinstance(op, GenericOp) and op.span is not None else None


def read_call(module: Module, op: OpSpec | GenericOp, given: Given) -> tuple[Module, Arguments]:
    """Return the call of an op that a command's options describe; for a generic one, the plain op of the call."""
    from opgen.cli.arguments import read_arguments
    from opgen.cli.forms import read_form
    from opgen.spec.model.model import GenericOp

    if isinstance(op, GenericOp):
        return read_form(module, op, given)
    if given.results is not None:
        raise UserError(f"--results {given.results}: '{op.name}' is not generic, and has the results that it has")
    return module, read_arguments(op, given.dtypes, given.shapes, given.sizes, given.attrs)


def read_schedule(path: Path, kind: Kind) -> Schedule:
    """Return the schedule that a file has, if it is one for that kind of target."""
    from opgen.schedule.schedule import parse_schedule
    from opgen.schedule.targets import require_target

    schedule = parse_schedule(files.text(path).replace("\r\n", "\n"), str(path))
    require_target(schedule, kind)
    return schedule
