"""Fixed pipeline from a scheduled kernel to the emitters' input, which has no "vector" and no "unroll" loops."""

from __future__ import annotations

from collections.abc import Callable

from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.passes.interleave import interleave
from opgen.passes.join import join
from opgen.passes.lane_sums import merge_rows
from opgen.passes.left_out import select_factors
from opgen.passes.masks import masks_to_selects
from opgen.passes.roll import roll
from opgen.passes.simplify import simplify
from opgen.passes.swizzle import swizzle
from opgen.passes.tighten import tighten
from opgen.passes.unmask import unmask
from opgen.passes.unroll import unroll
from opgen.passes.vectorize import vectorize

Pass = Callable[[Kernel], Kernel]


def _simplify_once(kernel: Kernel) -> Kernel:
    return simplify(kernel, rounds=1)


PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("simplify", _simplify_once),
    ("vectorize", vectorize),
    ("masks", masks_to_selects),
    ("unroll", unroll),
    ("masks again", masks_to_selects),
    ("unmask", unmask),
    ("simplify again", _simplify_once),
    ("left out", select_factors),
    ("join", join),
    ("tighten", tighten),
    ("lane sums", merge_rows),
    ("interleave", interleave),
    ("swizzle", swizzle),
    ("roll", roll),
)
"""Vectors come before unrolling, so that the copies are copies of finished code."""


def legalize(kernel: Kernel, *, check: bool = True) -> Kernel:
    """Return the kernel as an emitter takes it, verified after each pass that changed it unless `check` is off."""
    return stages(kernel, check=check)[-1][1]


def stages(kernel: Kernel, *, check: bool = True) -> list[tuple[str, Kernel]]:
    """Return the kernel before and after each pass, by the pass's name; an unchanged kernel is the same object."""
    with kept_proofs():
        return _stages(kernel, check)


def _stages(kernel: Kernel, check: bool) -> list[tuple[str, Kernel]]:
    result = [("scheduled", kernel)]
    for name, run in PIPELINE:
        new = run(kernel)
        if check and new is not kernel:
            verify(new)
        kernel = new
        result.append((name, kernel))
    return result
