"""Scalar functions give an element the same bits wherever it lies: by specialised and generic kernels, in vectors and
what is left over, on any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import opgen
from opgen.runtime import threads

SEED = 11
CALLS = {f: f"{f}(x[i])" for f in ("exp", "log", "tanh", "erf", "sin", "cos")} | {"power": "pow(x[i], 0.7)"}


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("functions") / "functions.op"
    lines = [
        f"op Of{name.capitalize()} {{ type T in {{float32, float64}}  input x: T[n]  output y: T[n]  y[i] = {call} }}"
        for name, call in CALLS.items()
    ]
    path.write_text("\n".join(lines))
    return opgen.load(path)


@pytest.fixture
def as_before() -> Iterator[None]:
    count = threads.get_num_threads()
    yield
    threads.set_num_threads(count)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", CALLS)
def test_bits_do_not_depend_on_the_kernel(
    function: str, dtype: type[np.floating], ops: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(SEED)
    x = np.concatenate([rng.uniform(0, 5, 40_000), rng.uniform(0, 1e5, 5_001)]).astype(dtype)
    rng.shuffle(x)
    op = getattr(ops, f"of_{function}")
    found = []
    for policy, count in [("always", 1), ("never", 1), ("never", 2)]:
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        threads.set_num_threads(count)
        found.append(op(x))
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    for first, last in [(3, 10), (100, 137), (1_001, 1_002)]:
        found.append(found[0].copy())
        found[-1][first:last] = op(x[first:last].copy())
    for other in found[1:]:
        assert other.tobytes() == found[0].tobytes(), f"seed {SEED}"
