"""A model whose weights are worth a file of the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.onnx.models import constant, float_input, model, node

Floats = npt.NDArray[np.float32]


def drawn(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layers(path: Path, seed: int = 1) -> Path:
    """Two products, of which each takes weights that are worth a file."""
    first, second = drawn(64, 128, seed=seed), drawn(128, 64, seed=seed + 1)
    nodes = [node("MatMul", ["x", "a"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "b"], ["y"])]
    whole = model(nodes, [float_input("x", ("n", 64))], initialisers=[constant("a", first), constant("b", second)])
    path.write_bytes(whole.SerializeToString())
    return path
