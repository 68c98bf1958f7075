"""`python -m tests.verification.random_models`: random ONNX models on the command line."""

from __future__ import annotations

import random
import sys
from collections import defaultdict

import click

from tests.verification.random_models.case import VERDICTS, Outcome
from tests.verification.random_models.contestants import has_onnxruntime
from tests.verification.random_models.workers import outcomes, work

SHOWN = 2
"""Models that are shown of each kind."""
FINDINGS = ("unsettled", "wrong", "broken")


@click.command("random_models", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="Number of models.")
@click.option("--seed", type=int, help="Seed of the first model; the next ones follow.  [default: random]")
@click.option("--all", "everything", is_flag=True, help="Show refusals, and where the reference alone differs, too.")
@click.option("--worker", nargs=2, type=int, hidden=True)
def main(count: int, seed: int | None, everything: bool, worker: tuple[int, int] | None) -> None:
    """Compare random ONNX models with the reference evaluator of ONNX and, where it is installed, ONNX Runtime.

    Each model runs with two combinations of sizes and again with the first.  Exits with 1 if opgen alone differs,
    crashes or raises an untyped error, or where nobody settles who is right.
    """
    if worker:
        work(*worker)
        return
    first = random.SystemRandom().randrange(1 << 40) if seed is None else seed
    beside = "and ONNX Runtime" if has_onnxruntime() else "alone: onnxruntime is not installed"
    print(f"seed {first}; the reference evaluator {beside}", flush=True)
    groups: dict[tuple[str, str], list[tuple[int, Outcome]]] = defaultdict(list)
    for number, (case, outcome) in enumerate(outcomes(first, first + count), 1):
        kind = outcome.operator if outcome.verdict != "refused" else outcome.detail.splitlines()[-1][-160:]
        groups[outcome.verdict, kind].append((case, outcome))
        if number % 100 == 0:
            print(f"{number} of {count}", file=sys.stderr, flush=True)
    show(groups, [*FINDINGS, *(["outvoted", "refused"] if everything else [])])
    sys.exit(1 if any(verdict in FINDINGS for verdict, _ in groups) else 0)


def show(groups: dict[tuple[str, str], list[tuple[int, Outcome]]], verdicts: list[str]) -> None:
    """Print the number of models by verdict, and some models of `verdicts` with the commands that repeat them."""
    for verdict in [*VERDICTS, "broken"]:
        count = sum(len(cases) for (v, _), cases in groups.items() if v == verdict)
        print(f"{verdict:10} {count:6}  {VERDICTS.get(verdict, 'a crash, a hang or an untyped error')}")
    for (verdict, kind), cases in sorted(groups.items(), key=lambda g: -len(g[1])):
        if verdict not in verdicts:
            continue
        print(f"\n{verdict}: {kind}: {len(cases)}")
        for case, outcome in cases[:SHOWN]:
            print(f"    python -m tests.verification.random_models --seed {case} --count 1")
            print("\n".join(f"    | {line}" for line in outcome.detail.splitlines()[:40]))


if __name__ == "__main__":
    main(prog_name="python -m tests.verification.random_models")
