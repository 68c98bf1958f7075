"""The loops that measure a machine compute what they say; how long they take is for `opgen doctor`."""

from __future__ import annotations

import ctypes

import pytest

from opgen.compiler import toolchain
from opgen.runtime.measuring import probes
from opgen.runtime.native.library import load_library

CHAINS = 5


def run(ir: str, name: str, rounds: int) -> float:
    library = load_library(toolchain.object_code(ir, toolchain.host()), name)
    result = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library.address(name))(rounds)
    assert isinstance(result, float)
    return result


@pytest.mark.parametrize("lanes", [4, 8])
def test_chains_of_multiply_adds(lanes: int) -> None:
    """Each begins with 1, and becomes its half and 1 in each round; 1/2 is added to them."""
    assert run(probes.fma_loop("chains", lanes, CHAINS), "chains", 3) == CHAINS * 1.875 + 0.5


@pytest.mark.skipif(not toolchain.host().has_pairs, reason="this CPU has no dot product of bfloat16 pairs")
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_chains_of_dot_products(lanes: int) -> None:
    """Each begins with 1, and (0, 1/2) . (0, 1/2) is added in each round; 1/2 is added to them."""
    assert run(probes.pair_loop("chains", lanes, CHAINS), "chains", 4) == CHAINS * 2.0 + 0.5
