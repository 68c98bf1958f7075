"""How compile time grows with the number of definitions: CPU seconds of each stage for chains of growing length.

    python -m tools.compile_time                           all chains of 50, 100 and 200 definitions
    python -m tools.compile_time rows cells -n 100,1000    some of them
    python -m tools.compile_time rows --gradient           the gradient by `x`

The last column is the time of all stages over that of the shortest chain, divided by what linear growth gives.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import click

from opgen.codegen.llvm.target import Target
from opgen.compiler import toolchain
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, Cuda
from opgen.grad import gradient
from opgen.grad.load import derived
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.lower import lower, variant_of
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import apply
from opgen.spec import load_text, solve
from opgen.spec.call.environment import evaluate
from opgen.spec.model.model import Module, OpSpec

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Chain:
    """Specs of one op `A` whose length is a parameter; `gradient` of it is by `x`."""

    text: Callable[[int], str]
    shapes: Shapes


def _op(inputs: str, body: str) -> str:
    return f"op A {{\n  type T in {{float32}}\n{inputs}\n  output y: T[n, m]\n{body}\n}}\n"


_X = "  input x: T[n, m]"
_W = _X + "\n  input w: T[m, m]"


def _lets(length: int, let: Callable[[str, str], str]) -> str:
    """`length` intermediates, each of the one before, and the output that copies the last."""
    names = ["x", *(f"t{i}" for i in range(length))]
    lines = [let(new, old) for old, new in itertools.pairwise(names)]
    return "\n".join([*lines, f"  y[i, j] = {names[-1]}[i, j]"])


def _pointwise(length: int) -> str:
    return _op(_X, _lets(length, lambda new, old: f"  let {new}[i, j] = tanh({old}[i, j]) + 0.5"))


def _rows(length: int) -> str:
    def let(new: str, old: str) -> str:
        return f"  let {new}[i, j] = {old}[i, j] - sum[k]({old}[i, k]) / 96"

    return _op(_X, _lets(length, let))


def _layers(length: int) -> str:
    """Products and rectifiers in turn."""

    def let(new: str, old: str) -> str:
        if int(new[1:]) % 2:
            return f"  let {new}[i, j] = max({old}[i, j], 0)"
        return f"  let {new}[i, j] = sum[k]({old}[i, k] * w[k, j])"

    return _op(_W, _lets(length, let))


def _cells(length: int) -> str:
    """Return an LSTM cell, unrolled: nine intermediates a step."""
    gates = "ifgo"
    inputs = [_X, *(f"  input {kind}{g}: T[m, m]" for g in gates for kind in "wu")]
    lines = []
    state, memory = "x", "x"
    for t in range(max(1, length // 9)):
        for g in gates:
            products = f"sum[k](x[i, k] * w{g}[k, j]) + sum[k]({state}[i, k] * u{g}[k, j])"
            lines.append(f"  let p{g}{t}[i, j] = {products}")
        for g in gates:
            value = f"tanh(p{g}{t}[i, j])" if g == "g" else f"1 / (1 + exp(-p{g}{t}[i, j]))"
            lines.append(f"  let {g}{t}[i, j] = {value}")
        lines.append(f"  let c{t}[i, j] = f{t}[i, j] * {memory}[i, j] + i{t}[i, j] * g{t}[i, j]")
        lines.append(f"  let h{t}[i, j] = o{t}[i, j] * tanh(c{t}[i, j])")
        state, memory = f"h{t}", f"c{t}"
    return _op("\n".join(inputs), "\n".join([*lines, f"  y[i, j] = {state}[i, j]"]))


def _nested(length: int) -> str:
    """One expression, calls within calls, as deep as a spec may write it."""
    depth = min(length, 60)
    return _op(_X, f"  y[i, j] = {'tanh(' * depth}x[i, j]{')' * depth}")


def _terms(length: int) -> str:
    return _op(_X, "  y[i, j] = " + " + ".join(f"x[i, j] * {k + 1}.5" for k in range(length)))


_SMALL: Shapes = {"x": (64, 96)}
_GATES: Shapes = {f"{kind}{g}": (96, 96) for g in "ifgo" for kind in "wu"}

CHAINS = {
    "pointwise": Chain(_pointwise, _SMALL),
    "rows": Chain(_rows, _SMALL),
    "layers": Chain(_layers, _SMALL | {"w": (96, 96)}),
    "cells": Chain(_cells, _SMALL | _GATES),
    "nested": Chain(_nested, _SMALL),
    "terms": Chain(_terms, _SMALL),
}


def kernel_of(module: Module, op: OpSpec, shapes: Shapes) -> Kernel:
    """Return the simplified kernel for shapes."""
    lowered = lower(module, op, variant_of(op, {"T": "float32"}, {}))
    call = solve(op, module, shapes, {}, {})
    names = (p.name for p in lowered.kernel.parameters)
    values = {n: evaluate(e, call) for n, e in zip(names, lowered.arguments, strict=True)}
    return simplify(bind(lowered.kernel, {n: v for n, v in values.items() if not isinstance(v, float)}))


def stages(chain: Chain, length: int, target: Target, by_gradient: bool) -> Iterator[tuple[str, float]]:
    """Yield the CPU seconds of each stage."""

    text = chain.text(length)
    begin = time.process_time()

    def lap(name: str) -> tuple[str, float]:
        nonlocal begin
        now = time.process_time()
        taken, begin = now - begin, now
        return name, taken

    module = load_text(text)
    yield lap("check")
    module = derived(module)
    op, shapes = module.ops[0], dict(chain.shapes)
    if by_gradient:
        op = gradient(module, op, "x")
        shapes["grad_y"] = chain.shapes["x"]
        module = replace(module, ops=(*module.ops, op))
    yield lap("derive")
    kernel = kernel_of(module, op, shapes)
    yield lap("lower")
    schedule, fast = scheduled(kernel, "cpu", target.machine)
    yield lap("schedule")
    apply(kernel, schedule)
    yield lap("apply")
    legal = legalize(fast)
    yield lap("legalize")
    printed = print_kernel(legal)
    yield lap("print")
    parse_kernel(printed)
    yield lap("parse")
    made = artifact(Compilation(legal, target, schedule="finished"))
    made.text("llvm")
    yield lap("emit")
    made.text("asm")
    yield lap("LLVM")
    artifact(Compilation(kernel, Cuda(), schedule="automatic")).text("cuda")
    yield lap("CUDA")


@click.command(help=__doc__)
@click.argument("chains", nargs=-1, type=click.Choice(list(CHAINS)))
@click.option("-n", "lengths", default="50,100,200", help="Lengths, separated by commas.")
@click.option("--gradient", "by_gradient", is_flag=True, help="Of the gradient by `x`.")
def main(chains: tuple[str, ...], lengths: str, by_gradient: bool) -> None:
    """Print a line for each chain and length."""
    target = toolchain.host()
    for name in chains or tuple(CHAINS):
        first: tuple[int, float] | None = None
        for length in (int(n) for n in lengths.split(",")):
            click.echo(f"{name:10}{length:5} ", nl=False)
            total = 0.0
            for stage, seconds in stages(CHAINS[name], length, target, by_gradient):
                total += seconds
                click.echo(f" {stage} {seconds:.2f}", nl=False)
            first = first or (length, total)
            click.echo(f"  all {total:.1f} s, {total / first[1] / (length / first[0]):.2f} of linear")


if __name__ == "__main__":
    main()
