"""One random model: opgen's results beside those of the reference evaluator and of ONNX Runtime."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from tests.verification.random_models.build import BINDINGS, Array, Builder
from tests.verification.random_models.contestants import RefusedError, Results, Run, onnxruntime_of, opgen_of
from tests.verification.random_models.generate import generate
from tests.verification.random_models.judge import Expected, difference, exactly, expected

ORDER = (*range(BINDINGS), 0)
"""Bindings in the order of the runs: the first sizes come again at the end."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: `verdict` is a word of VERDICTS; `operator` made the first value that differs."""

    verdict: str
    operator: str = ""
    detail: str = ""


VERDICTS = {
    "right": "as the reference evaluator",
    "outvoted": "as ONNX Runtime; the reference evaluator alone differs",
    "refused": "refused by opgen with a typed error",
    "unsettled": "all three differ, or two and nobody else takes the model",
    "wrong": "opgen alone differs",
}


def attempt(seed: int) -> Outcome:
    """Return what comes of the model of a seed."""
    builder = generate(random.Random(seed))
    outcome = _compare(builder, seed, None)
    if outcome.verdict in ("right", "refused"):
        return outcome
    return _first_difference(builder, seed) or outcome


def _first_difference(builder: Builder, seed: int) -> Outcome | None:
    """The same for the shortest beginning of the model whose result differs."""
    for number, step in enumerate(builder.steps):
        names = [n for n in step.node.output if n]
        part = _part(builder, number)
        outcome = _compare(part, seed, names)
        if outcome.verdict not in ("right", "refused"):
            detail = f"{outcome.detail}\n{onnx.printer.to_text(part.model(names))}"
            return Outcome(outcome.verdict, step.node.op_type, detail)
    return None


def _part(builder: Builder, number: int) -> Builder:
    """The model of what a step needs, and it."""
    needed = set(builder.steps[number].reads)
    kept = [builder.steps[number]]
    for step in reversed(builder.steps[:number]):
        if needed & set(step.node.output):
            kept.append(step)
            needed |= set(step.reads)
    return replace(
        builder,
        inputs={n: v for n, v in builder.inputs.items() if n in needed},
        constants={n: a for n, a in builder.constants.items() if n in needed},
        steps=kept[::-1],
    )


def _compare(builder: Builder, seed: int, names: Sequence[str] | None) -> Outcome:
    model = builder.model(names)
    results = [o.name for o in model.graph.output]
    try:
        ours = opgen_of(model)
        peer = onnxruntime_of(model, results)
        verdicts = [_run(builder, b, seed, results, ours, peer) for b in ORDER]
    except RefusedError as refused:
        return Outcome("refused", detail=str(refused))
    order = list(VERDICTS)
    return max(verdicts, key=lambda o: order.index(o.verdict))


def _run(builder: Builder, binding: int, seed: int, results: Sequence[str], ours: Run, peer: Run | None) -> Outcome:
    wanted = expected(builder, binding, seed)
    feeds = builder.feeds(binding)
    given = ours(feeds)
    different = _differences(given, wanted, results)
    if not different:
        return Outcome("right")
    try:
        theirs = peer(feeds) if peer else None
    except RefusedError:
        theirs = None
    detail = f"sizes {binding}: " + "; ".join(f"{n}: {d}" for n, d in different.items())
    if theirs is None:
        return Outcome("unsettled", detail=detail + "; ONNX Runtime does not take it")
    if not _differences(given, {n: _around(theirs[n], w) for n, w in wanted.items() if n in theirs}, results):
        return Outcome("outvoted", detail=detail)
    apart = _differences(theirs, wanted, results)
    words = "; ONNX Runtime: " + "; ".join(f"{n}: {d}" for n, d in apart.items())
    return Outcome(
        "unsettled" if apart.keys() & different.keys() else "wrong", detail=detail + (words if apart else "")
    )


def _differences(given: Results, wanted: dict[str, Expected], results: Sequence[str]) -> dict[str, str]:
    found = {n: difference(given[n], wanted[n]) for n in results if n in wanted}
    return {n: d for n, d in found.items() if d}


def _around(elements: Array, wanted: Expected) -> Expected:
    """The same tolerance around other elements; where their shape is another, that of their own rounding."""
    if elements.shape == wanted.elements.shape:
        return Expected(elements, wanted.tolerance, wanted.stable)
    return exactly(elements)
