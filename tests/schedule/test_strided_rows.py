"""Contractions whose results lie along what is read with a stride: lanes go along another loop."""

from __future__ import annotations

import random

import pytest

from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.simplify import simplify
from opgen.spec import load_text
from tests.support.machines import MACHINES
from tests.support.scheduled import assert_right

MODULE = load_text(
    """
    op Subsampled {
      type T in {float32, float64}
      input x: T[images, channels, height, width]
      input w: T[outputs, channels, taps, taps]
      attr step: int >= 1
      output y: T[images, outputs, rows, columns]
      require height >= taps and width >= taps : x "a window"
      let rows = (height - taps) // step + 1
      let columns = (width - taps) // step + 1
      y[n, k, i, j] = sum[c, r < taps, s < taps](x[n, c, i * step + r, j * step + s] * w[k, c, r, s])
    }
    """
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(6))
def test_lanes_go_along_what_is_not_read_with_a_stride(seed: int, machine: str) -> None:
    rng = random.Random(seed)
    numbers = {
        "images": rng.choice([1, 2]),
        "channels": rng.choice([3, 8]),
        "outputs": rng.choice([16, 20, 32]),
        "taps": rng.choice([1, 2, 3]),
        "step": rng.choice([2, 3]),
    }
    columns = rng.choice([15, 16, 32])
    numbers["width"] = (columns - 1) * numbers["step"] + numbers["taps"]
    numbers["height"] = 4 * numbers["step"] + numbers["taps"]
    numbers |= {"rows": 5, "columns": columns}
    dtype = rng.choice(["float32", "float64"])
    lowered = lower(MODULE, MODULE.ops[0], Variant({"T": dtype}, {})).kernel
    kernel = simplify(bind(lowered, {p.name: numbers[p.name] for p in lowered.parameters}))
    text = assert_right(kernel, MACHINES[machine], seed)
    assert "vectorize" in text, f"seed {seed}: {numbers}"
