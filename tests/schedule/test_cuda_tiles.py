"""Several results a thread on a GPU: as the definition says to the bit, since each sum keeps the order of its terms."""

from __future__ import annotations

import os

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices.emulation import compile_emulated
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import apply
from opgen.spec import load_text

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
MODULE = load_text("""
op Product {
  type T in {float16, float32}
  input x: T[rows, terms]
  input w: T[terms, columns]
  output y: T[rows, columns]
  y[i, j] = sum[t](x[i, t] * w[t, j])
}

op Windows {
  type T in {float16, float32}
  input x: T[height, width, channels]
  input w: T[3, 3, channels, kept]
  output y: T[height, width, kept]
  y[i, j, k] = sum[r, s, c]((x[i + r - 1, j + s - 1, c] else 0) * w[r, s, c, k])
}

op Planes {
  type T in {float16, float32}
  input x: T[channels, height, width]
  input w: T[kept, channels, 3, 3]
  output y: T[kept, height, width]
  y[k, i, j] = sum[c, r, s]((x[c, i + r - 1, j + s - 1] else 0) * w[k, c, r, s])
}

op Apart {
  type T in {float16, float32}
  input x: T[height, width, channels]
  input w: T[3, 3, channels]
  output y: T[height, width, channels]
  y[i, j, c] = sum[r, s]((x[i + r - 1, j + s - 1, c] else 0) * w[r, s, c])
}
""")
SIZES = {
    "Product": {"rows": 1016, "terms": 5, "columns": 256},
    "Windows": {"height": 37, "width": 56, "channels": 3, "kept": 128},
    "Planes": {"height": 37, "width": 56, "channels": 3, "kept": 128},
    "Apart": {"height": 63, "width": 70, "channels": 96},
}
TILES = {
    "Product": ["split j 64 tail=exact -> j_o, j_b", "split i 2 tail=exact -> i_o, i_v", "unroll j_v"],
    "Windows": ["split k 128 tail=exact -> k_o, k_b", "split j 2 tail=exact -> j_o, j_v", "bind j_o_w thread.y"],
    "Planes": ["split j_b 28 tail=exact -> j_v, j_t", "split k 4 tail=exact -> k_o, k_v", "bind k_o_w thread.y"],
    "Apart": ["split c 32 tail=exact -> c_o, c_b", "split j 7 tail=exact -> j_o, j_v", "unroll r\nunroll s"],
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", SIZES)
def test_tiles(name: str, dtype: str) -> None:
    kernel = simplify(bind(lower(MODULE, MODULE.op(name), Variant({"T": dtype}, {})).kernel, SIZES[name]))
    schedule = default_schedule(kernel, "cuda")
    assert [step for step in TILES[name] if step not in str(schedule)] == [], str(schedule)
    rng = np.random.default_rng(SEED)
    arrays = {
        b.name: rng.standard_normal(tuple(int(getattr(n, "value", 3)) for n in b.shape)).astype(dtype)
        for b in kernel.inputs
    }
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    (run,) = compile_emulated([legalize(apply(kernel, schedule))])
    for reverse in (False, True):
        np.testing.assert_array_equal(run(arrays, {}, reverse=reverse)["y"], expected, f"seed {SEED}")


@pytest.mark.parametrize("sizes", [{"rows": 8, "terms": 5, "columns": 256}, {"rows": 4096, "terms": 5, "columns": 9}])
def test_few_results_and_odd_sizes_have_no_tiles(sizes: dict[str, int]) -> None:
    kernel = simplify(bind(lower(MODULE, MODULE.op("Product"), Variant({"T": "float32"}, {})).kernel, sizes))
    assert "thread.y" not in str(default_schedule(kernel, "cuda"))
