"""`opgen inspect`: an op, or a model, at any stage on the way to machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from opgen import files
from opgen.cli.as_json import JSON, inspected, print_json
from opgen.cli.as_json import algorithm as algorithm_as_json
from opgen.cli.inspect_model import STAGES as MODEL_STAGES
from opgen.cli.models import DIMS, SHAPES, is_model
from opgen.cli.options import FILE, SPECS_FOLDER, GivenPath, spec_files, specs_or_default
from opgen.cli.progress import working
from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.cli.arguments import Arguments
    from opgen.cli.forms import Given
    from opgen.pipeline import Pipeline, Stage
    from opgen.schedule.schedule import Schedule
    from opgen.schedule.targets import Target
    from opgen.spec.model import GenericOp, Module, OpSpec

LANGUAGES = {
    "spec": "spec",
    "model": "spec",
    "loop": "loop",
    "schedule": "loop",
    "why": "loop",
    "scheduled": "loop",
    "legal": "loop",
    "llvm": "llvm",
    "asm": "gas",
    "cuda": "cuda",
    "ptx": "ptx",
}
"""Each stage, and the language of its text."""

CUDA = "cuda"
DEVICE_STAGES = ("cuda", "ptx")
CPU_STAGES = ("why", "llvm", "asm")


@click.command("inspect")
@click.argument("op", metavar="OP|MODEL")
@click.option("--stage", type=click.Choice([*LANGUAGES, *MODEL_STAGES]),
              help="[default: scheduled; graph of a model, spec of a node]")  # fmt: skip
@SPECS_FOLDER
@click.option("--dtype", "dtypes", multiple=True, metavar="[T=]TYPE",
              help="The scalar type; of one type variable if it is named.  [default: float32]")  # fmt: skip
@SHAPES
@click.option("--sizes", multiple=True, metavar="INPUT=1,8,8,3", help="The value of an input that gives sizes.")
@click.option(
    "--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="An attribute: strides=1,2,2,1, padding=SAME."
)
@click.option("--target", default="host", show_default=True, metavar="TARGET",
              help="host, generic, x86-64, x86-64-v2, -v3, -v4, aarch64, or cuda.")  # fmt: skip
@click.option("--schedule", "schedule_file", type=FILE,
              help="A schedule to use in place of the default one.")  # fmt: skip
@click.option("--results", type=click.IntRange(min=1), metavar="N", help="How many results of a generic op are wanted.")
@DIMS
@click.option("--node", metavar="N", help="A node of a model, by number or name, in place of the whole.")
@click.option("--after", metavar="PASS", help="Only the graph after this pass.")
@click.option("--explain", is_flag=True, help="Say what the passes did with a model, and the work of its nodes.")
@click.option("--algorithm", metavar="NAME", help="An algorithm of the op, in place of its definition.")
@click.option("--algorithms", is_flag=True, help="List the algorithms of the op.")
@JSON
@click.option("--output", type=GivenPath(dir_okay=False), help="Write there and not to stdout.")
def command(
    op: str,
    stage: str | None,
    specs: Path | None,
    dtypes: tuple[str, ...],
    shapes: tuple[str, ...],
    sizes: tuple[str, ...],
    attrs: tuple[str, ...],
    target: str,
    schedule_file: Path | None,
    results: int | None,
    dims: tuple[str, ...],
    node: str | None,
    after: str | None,
    explain: bool,
    algorithm: str | None,
    algorithms: bool,
    as_json: bool,
    output: Path | None,
) -> None:
    """Prints what becomes of an OP, or of a MODEL in ONNX's format (a file named *.onnx), at a stage.

    With --algorithm, OP is computed by other mathematics of its spec (the stages spec and model then show these).

    With the shapes of all inputs the kernel is the one specialised for such a call; without, the one for all sizes.
    A generic op has kernels for its calls: it takes the shapes of those inputs that are there (--shape A=2,3, or A=?,?
    for all sizes; several times for an input that is many), and --sizes for inputs whose values count.

    \b
    spec       the op as its file has it
    model      resolved, as a spec: fragments in place, gradients derived, all ranges said
    loop       loop IR
    schedule   the steps that turn it into a fast nest; --schedule reads such a text
    why        what these steps were chosen from: for each nest the plans that were legal, with their prices
    scheduled  loop IR after these steps
    legal      loop IR as an emitter takes it: vectors formed, loops unrolled
    llvm, asm  LLVM IR as emitted; assembly
    cuda, ptx  CUDA C; PTX (needs NVRTC or nvcc)

    A MODEL takes the shapes of inputs whose sizes are open.  Its stages are these, and those above of one of its nodes
    (--node; their spec is what fusion made of them).

    \b
    graph      nodes and values: as imported, then after each pass
    plan       where every tensor lies, step by step
    program    the entry that runs the kernels, as LLVM IR
    """
    if is_model(op):
        of_ops = {"--specs": specs, "--dtype": dtypes, "--sizes": sizes, "--attr": attrs, "--algorithm": algorithm}
        _refuse(f"{op} is a model", {**of_ops, "--algorithms": algorithms, "--results": results})
        _model(op, stage, shapes, dims, node, after, explain, target, schedule_file, as_json, output)
        return
    _refuse(f"{op} is an op", {"--dim": dims, "--node": node, "--after": after, "--explain": explain})
    stage = stage or "scheduled"
    if stage in MODEL_STAGES:
        raise UserError(f"--stage {stage} is of models (files named *.onnx); '{op}' is an op")
    if target == CUDA and stage in CPU_STAGES:
        raise UserError(f"--target cuda has no stage {stage}; it has {' and '.join(DEVICE_STAGES)}")
    from opgen.cli.forms import Given

    given = Given(dtypes, shapes, sizes, attrs, results)
    with working(f"{op}: {stage}"):
        module, declared = find(op, specs_or_default(specs))
        if stage == "spec" and given == Given() and (text := as_declared(declared)) is not None:
            show(text, LANGUAGES["spec"], output)
            return
        module, arguments = read_call(module, declared, given)
        spec = arguments.op
        if algorithms:
            if as_json:
                print_json([algorithm_as_json(spec, a) for a in spec.algorithms])
            else:
                show(listing(spec), LANGUAGES["spec"], output)
            return
        device = target == CUDA or stage in DEVICE_STAGES
        steps = None if schedule_file is None else read_schedule(schedule_file, "cuda" if device else "cpu")
        found = pipeline(module, spec, arguments, None if device else target, steps)
        if algorithm is not None:
            found = by_algorithm(found, algorithm)
        text = found.text(cast("Stage", stage))
    if as_json:
        print_json(inspected(found, arguments, stage, text))
        return
    show(text, LANGUAGES[stage], output)


def _refuse(what: str, given: Mapping[str, object]) -> None:
    """For options that are of no use here."""
    for option, value in given.items():
        if value:
            raise UserError(f"{option} cannot be given: {what}")


def _model(
    path: str,
    stage: str | None,
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    name: str | None,
    after: str | None,
    explain: bool,
    target: str,
    schedule_file: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Prints a model, or a node of one."""
    from opgen.cli import inspect_model

    stage = stage or ("graph" if name is None else "spec")
    if (name is None) != (stage in MODEL_STAGES):
        raise UserError(f"--stage {stage} is of {'nodes: name one with --node' if name is None else 'whole models'}")
    with working(f"{path}: {stage}"):
        found = inspect_model.inspected(path, shapes, dims)
        node = None if name is None else found.node(name)
        if explain:
            text, language = found.explanation(), "text"
        elif node is None:
            _refuse("it is of nodes (--node)", {"--schedule": schedule_file})
            text, language = found.text(stage, after), MODEL_STAGES[stage]
        else:
            _refuse("it is of whole models", {"--after": after})
            device = target == CUDA or stage in DEVICE_STAGES
            steps = None if schedule_file is None else read_schedule(schedule_file, "cuda" if device else "cpu")
            text = inspect_model.node_text(found.line(node, None if device else target, steps), stage)
            language = LANGUAGES[stage]
    if as_json:
        print_json(inspect_model.as_json(found, stage, text, node))
        return
    show(text, language, output)


def pipeline(
    module: Module, spec: OpSpec, arguments: Arguments, target: str | None, schedule: Schedule | None
) -> Pipeline:
    """The pipeline of what was asked for; `target` None means a CUDA device."""
    from opgen.pipeline import Pipeline, variant_of
    from opgen.runtime import toolchain
    from opgen.spec import solve

    call = None
    if arguments.shapes or arguments.sizes:
        call = solve(spec, module, arguments.shapes, arguments.sizes, arguments.attrs)
    words = {name: value for name, value in (call.attrs if call else arguments.attrs).items() if isinstance(value, str)}
    variant = variant_of(spec, arguments.types, words)
    if call is None:
        arguments.refuse_beyond(variant.values)
    return Pipeline(module, spec, variant, call, None if target is None else toolchain.target(target), schedule)


def by_algorithm(found: Pipeline, name: str) -> Pipeline:
    """The pipeline of an algorithm of an op, if it is for what was asked for."""
    from opgen.runtime.choose import takes

    known = {a.name: a for a in found.op.algorithms}
    if name not in known:
        hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
        raise UserError(f"--algorithm {name}: '{found.op.name}' has no such algorithm; {hint}")
    if found.target is None:
        raise UserError(f"--algorithm {name}: algorithms are for CPUs")
    if not takes(known[name], found.variant.types, found.call):
        raise UserError(f"--algorithm {name} is not for these types, shapes and attributes; see --algorithms")
    return replace(found, algorithm=known[name])


def listing(op: OpSpec) -> str:
    """The algorithms of an op: name, types, condition and description of each."""
    from opgen.bindings.formula import Formula

    lines = [] if op.algorithms else [f"'{op.name}' is computed by its definition only."]
    for a in op.algorithms:
        types = ", ".join(f"{v.name} in {{{', '.join(t.name for t in v.allowed)}}}" for v in a.type_variables)
        condition = "" if a.condition is None else f" when {Formula(op).text(a.condition)}"
        lines.append(f"{a.name}{' (optional)' if a.optional else ''}: {types}{condition}")
        lines += [f"    {line}".rstrip() for line in a.doc.splitlines()]
    return "\n".join(lines) + "\n"


def find(name: str, specs: Path) -> tuple[Module, OpSpec | GenericOp]:
    """The op of that name, or whose function has it, in the spec files."""
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
    """A generic op as its file has it; None for any other, which its pipeline shows."""
    from opgen.pipeline import source_lines
    from opgen.spec.model import GenericOp

    return source_lines(op.span) + "\n" if isinstance(op, GenericOp) and op.span is not None else None


def read_call(module: Module, op: OpSpec | GenericOp, given: Given) -> tuple[Module, Arguments]:
    """What the options of a command say of a call of an op; of a generic one the plain op that the call makes."""
    from opgen.cli.arguments import read_arguments
    from opgen.cli.forms import read_form
    from opgen.spec.model import GenericOp

    if isinstance(op, GenericOp):
        return read_form(module, op, given)
    if given.results is not None:
        raise UserError(f"--results {given.results}: '{op.name}' is not generic, and has the results that it has")
    return module, read_arguments(op, given.dtypes, given.shapes, given.sizes, given.attrs)


def read_schedule(path: Path, kind: Target) -> Schedule:
    """The schedule that a file has, if it is one for that kind of target."""
    from opgen.schedule.schedule import parse_schedule
    from opgen.schedule.targets import require_target

    schedule = parse_schedule(files.text(path).replace("\r\n", "\n"), str(path))
    require_target(schedule, kind)
    return schedule


def show(text: str, language: str, output: Path | None) -> None:
    """To a file, to a terminal in colours, or plain."""
    from opgen.cli.highlight import colored, wants_colors

    if output is not None:
        files.write(output, text.encode())
    else:
        click.echo(colored(text, language) if wants_colors() else text, nl=False)
