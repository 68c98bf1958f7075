"""The machine's limits, measured here and now: multiply-adds a second, and bytes a second through memory.

The first comes from a loop of independent fused multiply-adds on full vectors that never leaves the registers, written
in LLVM IR and compiled for this CPU; the second from copying arrays far larger than the caches (bytes read plus bytes
written).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

CHAINS = 12
"""Independent sums: more than latency times units on current CPUs, fewer than their vector registers."""

COPY_BYTES = 1 << 27
"""Bytes of each of the two arrays that are copied."""


@dataclass(frozen=True)
class Limits:
    """What this many threads can do at most: float32 operations a second and bytes a second."""

    threads: int
    flops: float
    bytes: float

    def seconds(self, flops: int, moved: int) -> float:
        """The least time for so many operations and bytes: what binds is the slower of the two."""
        return max(flops / self.flops, moved / self.bytes)


def measure(threads: int, quick: bool = False) -> Limits:
    """The limits of that many threads together."""
    repeats = 5 if quick else 15
    return Limits(threads, _peak(threads, repeats), _copy(threads, repeats))


def _peak(threads: int, repeats: int) -> float:
    lanes = _lanes()
    engine = _compile(_fma_loop(lanes))
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(engine.get_function_address("fma_loop"))
    rounds = 2_000_000
    seconds = _together(threads, repeats, lambda _: function(rounds))
    return threads * rounds * CHAINS * lanes * 2 / seconds


def _copy(threads: int, repeats: int) -> float:
    floats = COPY_BYTES // 4 // threads
    pairs = [(np.zeros(floats, np.float32), np.ones(floats, np.float32)) for _ in range(threads)]
    seconds = _together(threads, repeats, lambda i: np.copyto(*pairs[i]))
    return threads * floats * 8 / seconds


def _together(threads: int, repeats: int, work: Callable[[int], object]) -> float:
    """The least time in which all threads, started at once, do their work (both kinds of it release Python's lock)."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        others = [threading.Thread(target=work, args=(i,)) for i in range(1, threads)]
        for other in others:
            other.start()
        work(0)
        for other in others:
            other.join()
        times.append(time.perf_counter() - begin)
    return min(times)  # a limit is what the machine can do, not what it usually does


def _lanes() -> int:
    """float32 values in a vector register of this CPU."""
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx") else 4


def _fma_loop(lanes: int) -> str:
    """LLVM IR of a function: `rounds` times, every chain is multiplied and added to once."""
    vector = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{i} = phi {vector} [ %start, %entry ], [ %b{i}, %loop ]" for i in range(CHAINS))
    steps = "\n".join(
        f"  %b{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{i}, {vector} %factor, {vector} %start)"
        for i in range(CHAINS)
    )
    sums = "\n".join(f"  %s{i + 1} = fadd {vector} %s{i}, %b{i}" for i in range(CHAINS))
    splat = f"shufflevector {vector} %{{0}}, {vector} poison, <{lanes} x i32> zeroinitializer"
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define float @fma_loop(i64 %rounds) {{
entry:
  %small = sitofp i64 %rounds to float
  %one = fdiv float %small, %small
  %half = fmul float %one, 5.0e-1
  %one.v = insertelement {vector} poison, float %one, i32 0
  %start = {splat.format("one.v")}
  %half.v = insertelement {vector} poison, float %half, i32 0
  %factor = {splat.format("half.v")}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rounds
  br i1 %more, label %loop, label %done
done:
  %s0 = fmul {vector} %start, %factor
{sums}
  %result = extractelement {vector} %s{CHAINS}, i32 0
  ret float %result
}}
"""


def _compile(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.finalize_object()
    return engine
