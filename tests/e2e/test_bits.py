"""Bits of elements as other types: in Python, lanes, CUDA C and by the interpreter as numpy's views have them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import BitCast, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.walk import walk_exprs
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.schedule.default import scheduled
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call as Lowered

Array = npt.NDArray[np.generic]
BITS = ROOT / "tests" / "specs" / "bits.op"
SIZE = 37
CASES = [
    ("SingleBits", 32, "int32"),
    ("SingleBits", 32, "uint32"),
    ("DoubleBits", 64, "int64"),
    ("DoubleBits", 64, "uint64"),
]


def _case(op: str, width: int, kind: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and results; among the words those of zeros, infinities, denormals and NaNs, quiet and signalling."""
    number, unsigned = f"float{width}", f"uint{width}"
    infinity = int(np.array(np.inf, number).view(unsigned))
    odd = [0, 1, infinity, infinity + 1, infinity + infinity // 2048, 2 ** (width - 1) - 1]
    words = np.random.default_rng(width).integers(0, 2**width - 1, SIZE, unsigned, endpoint=True)
    words[: 2 * len(odd)] = [*odd, *(w + 2 ** (width - 1) for w in odd)]
    x, k = words.view(number), words[::-1].copy().view(kind)
    sign = words.dtype.type(2 ** (width - 1))
    moved = np.append(words[1:], sign) if op == "DoubleBits" else words
    right = {"words": moved.view(kind), "numbers": k.view(number), "turned": (words ^ sign).view(number)}
    return {"x": x, "k": k}, right | {"same": k.view(f"int{width}")}


def _assert_right(found: Mapping[str, Array], right: Mapping[str, Array], said: str) -> None:
    for name, value in right.items():
        assert found[name].dtype == value.dtype, (said, name)
        assert found[name].tobytes() == value.tobytes(), (said, name)


def _lanes(kernel: Kernel) -> set[int]:
    return {e.type.lanes for e in walk_exprs(kernel.body) if isinstance(e, BitCast)}


@pytest.mark.parametrize(("op", "width", "kind"), CASES)
def test_bits_are_kept(op: str, width: int, kind: str) -> None:
    arrays, right = _case(op, width, kind)
    made = getattr(generated(BITS), f"{op.removesuffix('Bits').lower()}_bits")(**arrays)
    _assert_right(dict(zip(right, made, strict=True)), right, "compiled")
    shapes = {n: a.shape for n, a in arrays.items()}
    kernel, parameters = Lowered(spec(BITS), spec(BITS).op(op), shapes, {}, dtype=kind).kernel()
    assert parse_kernel(print_kernel(kernel)) == kernel
    _assert_right(interpret(kernel, arrays, parameters), right, "interpreted")
    wide = legalize(scheduled(kernel, "cpu")[1])
    assert max(_lanes(wide)) > 1
    _assert_right(interpret(wide, arrays, parameters), right, "interpreted in lanes")
    if emulation.compiler() is not None:
        _assert_right(run_emulated(legalize(scheduled(kernel, "cuda")[1]), arrays, parameters), right, "as CUDA C")
