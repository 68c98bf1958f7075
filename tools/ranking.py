"""How well prices rank the plans of a nest: those that stand to choice are built and timed in turn with the one chosen.

    python -m tools.ranking                     the ops of tools/common_ops.op at their sizes
    python -m tools.ranking softmax column_sums some of them
    python -m tools.ranking --layers 100        as many calls of the benchmark's layers: three directions, two layouts,
                                                four types, one image and eight, by chance

For each nest with several candidates (`opgen inspect --stage why` shows them), the ten cheapest: their prices, and
their times in shares of the whole kernel's time with the plan that is chosen.  Then the share of nests whose plan is
within 5 % of the best.  One thread.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import click

from opgen.compiler import toolchain
from opgen.compiler.artifact import Artifact
from opgen.compiler.choose import definition_of
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
from opgen.grad import load
from opgen.lower import variant_of
from opgen.runtime.measuring.tuner import Candidate, Runner, decided
from opgen.runtime.threads import set_num_threads
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.cost.calibration import CANDIDATES
from opgen.schedule.why import choices
from opgen.spec import solve
from tools.bench.kernels import request_of
from tools.bench.layers import DIRECTIONS, DTYPES, FORMATS, LAYERS, Choice, read_cases
from tools.bench.op_rows import CASES, SPEC

ROUNDS = 15
WITHIN = 1.05
"""A plan is as good as another that takes so much less."""


@dataclass(frozen=True)
class Nest:
    """A loop nest of a row, with its candidates.

    Each candidate has its kind, its estimated cost in seconds, and the kernel's time in shares of the first one's time.
    """

    row: str
    loops: str
    candidates: tuple[tuple[str, float, float], ...]

    @property
    def behind(self) -> float:
        """Return the kernel's time over that with the best candidate."""
        return 1 / min(share for _, _, share in self.candidates)


def artifacts(names: tuple[str, ...]) -> Iterator[tuple[str, Artifact]]:
    """Yield the rows, each with its artifact for this machine."""
    module = load(SPEC)
    ops = {op.function_name: op for op in module.ops}
    for name, shapes in CASES:
        if names and name not in names:
            continue
        op = ops[name]
        call = solve(op, module, dict(zip((t.name for t in op.tensors), shapes, strict=False)), {}, {})
        variant = variant_of(op, {"T": "int32" if name.endswith("int32") else "float32"}, {})
        yield f"{name} {shapes}", artifact(Compilation(OpVariant(module, op, variant), toolchain.host(), call))


def layer_artifacts(count: int, seed: int) -> Iterator[tuple[str, Artifact]]:
    """Yield as many calls of the benchmark's layers, by chance, each with its artifact for this machine."""
    everything = read_cases(LAYERS, Choice((1, 8), DIRECTIONS, FORMATS, DTYPES))
    for case in random.Random(seed).sample(everything, min(count, len(everything))):
        yield case.name, artifact(definition_of(request_of(case)))


def measured(row: str, line: Artifact, rounds: int = ROUNDS) -> Iterator[Nest]:
    """Yield each nest of a kernel that has several candidates."""
    target = toolchain.host()
    runner = Runner(line.loop, line.arguments, target, 0)
    for choice in choices(line.loop, target.machine):
        if len(choice.ranked) < 2:
            continue
        built: list[tuple[str, float, Candidate]] = []
        for option, candidate in enumerate(choice.ranked[:CANDIDATES]):
            path = (*(0 for _ in range(choice.number)), option)
            made = runner.try_to_build(decided(line.loop, target.machine, Decisions(path, thorough=True)).kernel)
            if made is not None:
                built.append((candidate.plan.kind, candidate.price.seconds, made))
        least = _least([made for _, _, made in built], rounds)
        found = [(kind, cost, t / least[0]) for (kind, cost, _), t in zip(built, least, strict=True)]
        yield Nest(row, choice.nest, tuple(found))


def _least(made: list[Candidate], rounds: int) -> list[float]:
    """Return the least time of each, all in turns: others on the machine only add to them."""
    turns = [[m.seconds() for m in made] for _ in range(rounds)]
    return [min(times) for times in zip(*turns, strict=True)]


def report(nests: list[Nest]) -> Iterator[str]:
    """Yield the loop nests, those whose plan is furthest behind first, and the share of good ones."""
    for nest in sorted(nests, key=lambda n: -n.behind):
        yield f"{nest.behind:5.2f}  {nest.row}: nest over {nest.loops}"
        for kind, cost, share in nest.candidates:
            yield f"         {kind:12} price {1e6 * cost:9.1f} us  time {share:6.2f}"
    good = sum(n.behind <= WITHIN for n in nests)
    yield f"{good} of {len(nests)} nests have a plan within {WITHIN - 1:.0%} of the best of their candidates"


@click.command(help=__doc__)
@click.argument("ops", nargs=-1)
@click.option("--layers", type=click.IntRange(1), metavar="COUNT", help="Calls of the benchmark's layers, not ops.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice of calls.")
def main(ops: tuple[str, ...], layers: int | None, seed: int) -> None:
    set_num_threads(1)
    if layers is not None and ops:
        raise click.UsageError("either ops or --layers: expected one of them, given both")
    lines = artifacts(ops) if layers is None else layer_artifacts(layers, seed)
    nests: list[Nest] = []
    for row, line in lines:
        nests += measured(row, line)
        click.echo(f"{row}: {len(nests)} nests so far", err=True)
    for text in report(nests):
        click.echo(text)


if __name__ == "__main__":
    main()
