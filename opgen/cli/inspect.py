"""`opgen inspect`: an op, or a model, at any stage on the way to machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen import files
from opgen.cli.as_json import JSON, inspected, print_json
from opgen.cli.as_json import algorithm as algorithm_as_json
from opgen.cli.errors import say
from opgen.cli.inspect_model import PARTS
from opgen.cli.inspect_model import STAGES as MODEL_STAGES
from opgen.cli.models import DIMS, SHAPES, is_model
from opgen.cli.options import FILE, SPECS_FOLDER, GivenPath, specs_or_default
from opgen.cli.progress import working
from opgen.cli.rates import rates_note
from opgen.diagnostics import UserError

if TYPE_CHECKING:
    from opgen.cli.forms import Given
    from opgen.schedule.schedule import Schedule
    from opgen.spec.model.model import OpSpec

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
    "cost": "text",
}
"""Each stage, and the language of its text."""

CUDA = "cuda"
SPEC_STAGES = ("spec", "model")
DEVICE_STAGES = ("cuda", "ptx")
CPU_STAGES = ("why", "llvm", "asm")


@dataclass(frozen=True)
class Shown:
    """Options of an op's or a node's compilation, and of the output."""

    target: str
    schedule_file: Path | None
    part: str
    as_json: bool
    output: Path | None

    def built_for(self, stage: str) -> str | None:
        """Return the CPU that a stage is for; None: a CUDA device."""
        return None if self.target == CUDA or stage in DEVICE_STAGES else self.target

    def tell_rates(self, stage: str) -> None:
        """Say how far the rates that prices go by are from this machine's, where prices of this machine are shown."""
        if stage in ("why", "cost") and self.target == "host" and (note := rates_note()) is not None:
            say(note)

    def schedule(self, stage: str) -> Schedule | None:
        """Return the schedule that was given."""
        from opgen.cli.inspect_op import read_schedule

        if self.schedule_file is None:
            return None
        return read_schedule(self.schedule_file, "cuda" if self.built_for(stage) is None else "cpu")


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
@click.option(
    "--part", type=click.Choice(PARTS), default=PARTS[0], show_default=True,
    help="The part of a node's kernel that every run takes, or that runs once, first, on constants (legal, llvm, asm)."
)  # fmt: skip
@click.option("--after", metavar="PASS", help="Only the graph after this pass.")
@click.option("--explain", is_flag=True, help="Say what the passes did with a model, and the work of its nodes.")
@click.option(
    "--algorithm", metavar="NAME", help="An algorithm of the op, or definition.  [default: the one that calls take]"
)
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
    part: str,
    after: str | None,
    explain: bool,
    algorithm: str | None,
    algorithms: bool,
    as_json: bool,
    output: Path | None,
) -> None:
    """Prints what becomes of an OP, or of a MODEL in ONNX's format (a file named *.onnx), at a stage.

    OP is computed as calls are: by its definition, or by an algorithm of its spec that is estimated to be faster, which
    a note on stderr says.  --algorithm asks for one of them (the stages spec and model then show its mathematics).

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
    cost       estimated and measured time, and the machine's limits: of arithmetic, and of bytes by cache level

    A MODEL takes the shapes of inputs whose sizes are open.  Its stages are these, and those above of one of its nodes
    (--node: the kernel that the program runs, with operands in place of results and what depends on constants alone
    taken apart; its spec is what fusion made of the node).

    \b
    graph      nodes and values: as imported, then after each pass
    plan       where every tensor lies, step by step
    program    the entry that runs the kernels, as LLVM IR
    """
    shown = Shown(target, schedule_file, part, as_json, output)
    if is_model(op):
        of_ops = {"--specs": specs, "--dtype": dtypes, "--sizes": sizes, "--attr": attrs, "--algorithm": algorithm}
        _refuse(f"{op} is a model", {**of_ops, "--algorithms": algorithms, "--results": results})
        _model(op, stage, shapes, dims, node, after, explain, shown)
        return
    of_nodes = {"--node": node, "--part": part != PARTS[0]}
    _refuse(f"{op} is an op", {"--dim": dims, **of_nodes, "--after": after, "--explain": explain})
    from opgen.cli.forms import Given

    _op(op, stage or "scheduled", specs, Given(dtypes, shapes, sizes, attrs, results), algorithm, algorithms, shown)


def _op(
    op: str,
    stage: str,
    specs: Path | None,
    given: Given,
    algorithm: str | None,
    algorithms: bool,
    shown: Shown,
) -> None:
    """Prints an op."""
    from opgen.cli import inspect_op
    from opgen.compiler.make import artifact

    if stage in MODEL_STAGES:
        raise UserError(f"--stage {stage} is of models (files named *.onnx); '{op}' is an op")
    if shown.target == CUDA and stage in CPU_STAGES:
        raise UserError(f"--target cuda has no stage {stage}; it has {' and '.join(DEVICE_STAGES)}")
    with working(f"{op}: {stage}"):
        module, declared = inspect_op.find(op, specs_or_default(specs))
        if stage == "spec" and not any(vars(given).values()) and (text := inspect_op.as_declared(declared)) is not None:
            show(text, LANGUAGES["spec"], shown.output)
            return
        module, arguments = inspect_op.read_call(module, declared, given)
        if algorithms:
            _algorithms(arguments.op, shown)
            return
        request = inspect_op.request(module, arguments.op, arguments, shown.built_for(stage), shown.schedule(stage))
        found = artifact(request if algorithm is None else inspect_op.by_algorithm(request, algorithm))
        text = inspect_op.text(found, stage)
        shown.tell_rates(stage)
    if algorithm is None and stage not in SPEC_STAGES and (note := inspect_op.choice_note(arguments.op, found)):
        say(f"{note} (--algorithm: another one)")
    if shown.as_json:
        print_json(inspected(found, arguments, stage, text))
        return
    show(text, LANGUAGES[stage], shown.output)


def _algorithms(op: OpSpec, shown: Shown) -> None:
    """Lists the algorithms of an op."""
    from opgen.cli.inspect_op import listing

    if shown.as_json:
        print_json([algorithm_as_json(op, a) for a in op.algorithms])
    else:
        show(listing(op), LANGUAGES["spec"], shown.output)


def _refuse(what: str, given: Mapping[str, object]) -> None:
    """Refuse options that are of no use here."""
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
    shown: Shown,
) -> None:
    """Prints a model, or a node of one."""
    from opgen.cli import inspect_model

    stage = stage or ("graph" if name is None else "spec")
    if (name is None) != (stage in MODEL_STAGES):
        raise UserError(f"--stage {stage} is of {'nodes: name one with --node' if name is None else 'whole models'}")
    with working(f"{path}: {stage}"):
        found = inspect_model.inspected(path, shapes, dims)
        notes: list[str] = []
        node = None if name is None else found.node(name)
        if explain:
            text, language = found.explanation(), "text"
        elif node is None:
            _refuse("it is of nodes (--node)", {"--schedule": shown.schedule_file, "--part": shown.part != PARTS[0]})
            text, language = found.text(stage, after), MODEL_STAGES[stage]
        else:
            _refuse("it is of whole models", {"--after": after})
            made = found.artifact(node, shown.built_for(stage), shown.schedule(stage))
            text = inspect_model.node_text(made, stage, shown.part)
            notes = [] if stage in SPEC_STAGES else inspect_model.notes(made)
            language = LANGUAGES[stage]
            shown.tell_rates(stage)
    for note in notes:
        say(note)
    if shown.as_json:
        print_json(inspect_model.as_json(found, stage, text, node))
        return
    show(text, language, shown.output)


def show(text: str, language: str, output: Path | None) -> None:
    """Write to a file, to a terminal in colours, or plain."""
    from opgen.cli.highlight import colored, wants_colors

    if output is not None:
        files.write(output, text.encode())
    else:
        click.echo(colored(text, language) if wants_colors() else text, nl=False)
