"""What a graph knows of results while sizes are open: a size that is told never follows from one that is not."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from opgen.bindings.java.known import known_view
from opgen.spec.loading import load_text
from opgen.spec.model import OpSpec, Tensor
from tests.bindings.modules import OPS, SAMPLES, generated, spec
from tests.bindings.test_agreement import _by_check, _call


def _places(op: OpSpec, layout: object) -> list[list[str]]:
    """For each result and dimension, in the caller's order, the places that it follows from."""
    view = known_view(op)
    which = view.words.index(layout) if layout in view.words else view.standard
    return [told.split() for told in view.results[which if view.layout else 0].split(" | ")]


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
def test_what_is_told_follows_from_what_is_known(path: Path) -> None:
    """Sizes of random calls are changed one at a time: only results' sizes that name the place may change."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    changed = 0
    for op in spec(path).ops:
        for _ in range(60):
            shapes, vectors, attrs = _call(rng, op)
            before = _by_check(generated(path), op, shapes, vectors, attrs)
            view = known_view(op)
            if not before.startswith("{"):
                continue
            told = _places(op, attrs.get(view.layout or ""))
            for i, given in enumerate(op.inputs):
                for axis in range(len(shapes[given.name]) if isinstance(given, Tensor) else 0):
                    sizes = list(shapes[given.name])
                    sizes[axis] = rng.choice((1, sizes[axis] + 1, 2 * sizes[axis], 3 * sizes[axis], 40))
                    other = {**shapes, given.name: tuple(sizes)}
                    after = _by_check(generated(path), op, other, vectors, attrs)
                    if not after.startswith("{"):
                        continue
                    pairs = zip(ast.literal_eval(before).values(), ast.literal_eval(after).values(), told, strict=True)
                    for old, new, places in pairs:
                        for x, y, text in zip(old, new, places, strict=True):
                            changed += x != y
                            assert x == y or f"{i}.{axis}" in text.split(",") or text == "*", (
                                seed, op.name, shapes, vectors, attrs, given.name, axis,
                            )  # fmt: skip
    assert changed > 50


def test_places_by_layout() -> None:
    assert _places(spec(OPS).op("Conv2D"), "NHWC") == [["0.0", "0.1,1.0", "0.2,1.1", "0.3,1.2,1.3"]]
    assert _places(spec(OPS).op("Conv2D"), "NCHW") == [["0.0", "0.1,1.2,1.3", "0.2,1.0", "0.3,1.1"]]


def test_products_and_fixed_sizes() -> None:
    inputs = "input x: T[a * b] shape_only input w: T[b]"
    source = f"op Spread {{ type T in {{float32}} {inputs} output y: T[a, 3, b] y[i, j, k] = w[k] }}"
    assert _places(load_text(source, "rows.op").op("Spread"), None) == [["0.0,1.0", "-", "0.0,1.0"]]
