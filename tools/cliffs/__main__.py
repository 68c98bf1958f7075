"""`python -m tools.cliffs`: looks for computations that take far longer in one of two ways."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click
import numpy as np

from opgen.runtime.threads import set_num_threads
from tools.cliffs.forms import FORMS
from tools.cliffs.graphs import fused
from tools.cliffs.measure import in_turns
from tools.cliffs.pairs import Maker, Pair
from tools.cliffs.sizes import SIZES

KINDS: Mapping[str, tuple[Maker, ...]] = {"forms": FORMS, "graphs": (fused,), "sizes": SIZES}
SHORT = 2e-5
"""Seconds of the longer call below which a ratio is about calls and not about kernels."""
AGAIN = 1.3
"""A larger ratio is measured again: something else may have run meanwhile."""
CLOSE = 1e-3
"""Share of the greatest element: two ways of adding up differ by no more."""


@dataclass(frozen=True)
class Found:
    """The longer call's time by the other's, and how to make it again."""

    ratio: float
    text: str


@click.command("cliffs", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("kinds", nargs=-1, type=click.Choice(sorted(KINDS)), metavar="[KIND]...")
@click.option("--cases", type=click.IntRange(1), default=100, show_default=True, help="How many, all kinds together.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the first case; the next ones follow.")
@click.option(
    "--over", type=click.FloatRange(min=1), default=1.5, show_default=True, help="The ratios that are listed."
)
@click.option(
    "--fail", type=click.FloatRange(min=1), default=3.0, show_default=True, help="Exit with 1 from this one on."
)
def main(kinds: tuple[str, ...], cases: int, seed: int, over: float, fail: float) -> None:
    """Times pairs of calls that should take as long, in turns, on one thread.

    forms: ops written naturally and in steps.  graphs: captured as one function and node by node.  sizes: neighbours,
    for each unit of work.  Each case follows from its seed; ratios are of the longer to the shorter, greatest first.
    """
    set_num_threads(1)
    names, found, begun = kinds or tuple(sorted(KINDS)), list[Found](), time.monotonic()
    for n in range(cases):
        kind = names[n % len(names)]
        number = seed + n // len(names)
        case = tried(kind, number)
        found += [case] if case.ratio >= over else []
        print(f"\r{n + 1} of {cases} cases, {len(found)} over {over:g}", end="", file=sys.stderr, flush=True)
    print(f"\r{cases} cases in {time.monotonic() - begun:.0f} s, {len(found)} ratios over {over:g}")
    for case in sorted(found, key=lambda f: -f.ratio):
        print(case.text)
    sys.exit(any(case.ratio >= fail for case in found))


def tried(kind: str, seed: int) -> Found:
    """Return the ratio of a case: the least of three if it is large."""
    again = f"python -m tools.cliffs {kind} --cases 1 --seed {seed}"
    try:
        pair = _pair(kind, seed)
        if pair.same:
            _require_same(pair)
        times = _timed(pair)
        for _ in range(2):
            if _ratio(times) >= AGAIN:
                times = min(times, _timed(pair), key=_ratio)
    except Exception as error:
        raise RuntimeError(f"this case broke: {again}") from error
    shown = ", ".join(_told(pair, times))
    ratio = _ratio(times) if max(times) >= SHORT else 1.0
    return Found(ratio, f"{ratio:6.2f}  {pair.about}: {shown}\n        {again}")


def _pair(kind: str, seed: int) -> Pair:
    makers = KINDS[kind]
    return makers[seed % len(makers)](random.Random(f"{kind} {seed}"))


def _timed(pair: Pair) -> tuple[float, float]:
    """Seconds of each call, the first one's for as much work as the second does."""
    first, second = in_turns(pair.first[1], pair.second[1])
    return first / pair.work, second


def _ratio(times: tuple[float, float]) -> float:
    return max(times) / max(min(times), 1e-9)


def _told(pair: Pair, times: tuple[float, float]) -> Iterator[str]:
    for (name, _), seconds in zip((pair.first, pair.second), times, strict=True):
        yield f"{name} {1e6 * seconds:.1f} us"


def _require_same(pair: Pair) -> None:
    """Refuse pairs whose results differ by more than two orders of a sum do."""
    first, second = (np.asarray(call()) for _, call in (pair.first, pair.second))
    far = np.abs(first - second).max() if first.size else 0.0
    if first.shape != second.shape or far > CLOSE * max(1.0, float(np.abs(second).max(initial=0))):
        raise ValueError(f"the results of {pair.about} differ by {far}")


if __name__ == "__main__":
    main()
