"""LLVM IR of the loops that measure a machine: arithmetic in registers, and reads of consecutive vectors."""

from __future__ import annotations

STREAMS = 8
"""Vectors that an iteration of the reading loop reads, each into a sum of its own."""


def fma_loop(name: str, lanes: int, chains: int) -> str:
    """Return `float name(i64 rounds)`, which multiplies and adds once to every independent chain in each round."""
    vector = f"<{lanes} x float>"
    fma = f"{vector} @llvm.fma.v{lanes}f32"
    declared = f"declare {fma}({vector}, {vector}, {vector})"
    return _chains(name, lanes, chains, declared, f"{fma}({vector} %a{{0}}, {vector} %factor, {vector} %start)")


def pair_loop(name: str, lanes: int, chains: int) -> str:
    """Return the loop of `fma_loop` with dot products of bfloat16 pairs (AVX512_BF16)."""
    vector, halves = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
    dot = f"{vector} @llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    declared = f"declare {dot}({vector}, {halves}, {halves})"
    step = f"{dot}({vector} %a{{0}}, {halves} %pairs, {halves} %pairs)"
    return _chains(name, lanes, chains, declared, step, f"  %pairs = bitcast {vector} %factor to {halves}\n")


def _chains(name: str, lanes: int, chains: int, declared: str, step: str, ready: str = "") -> str:
    """Return a loop of independent chains: `step` is the call that makes the next of chain {0}."""
    vector = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{i} = phi {vector} [ %start, %entry ], [ %b{i}, %loop ]" for i in range(chains))
    steps = "\n".join(f"  %b{i} = call {step.format(i)}" for i in range(chains))
    sums = "\n".join(f"  %s{i + 1} = fadd {vector} %s{i}, %b{i}" for i in range(chains))
    splat = f"shufflevector {vector} %{{0}}, {vector} poison, <{lanes} x i32> zeroinitializer"
    return f"""
{declared}
define float @{name}(i64 %rounds) {{
entry:
  %small = sitofp i64 %rounds to float
  %one = fdiv float %small, %small
  %half = fmul float %one, 5.0e-1
  %one.v = insertelement {vector} poison, float %one, i32 0
  %start = {splat.format("one.v")}
  %half.v = insertelement {vector} poison, float %half, i32 0
  %factor = {splat.format("half.v")}
{ready}  br label %loop
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
  %result = extractelement {vector} %s{chains}, i32 0
  ret float %result
}}
"""


def read_loop(name: str, lanes: int) -> str:
    """Return `float name(ptr data, i64 count, i64 rounds)`, which reads `count` vectors `rounds` times.

    `count` is a multiple of STREAMS.
    """
    vector = f"<{lanes} x float>"
    streams = range(STREAMS)
    outer = "\n".join(f"  %o{i} = phi {vector} [ zeroinitializer, %entry ], [ %b{i}, %again ]" for i in streams)
    phis = "\n".join(f"  %a{i} = phi {vector} [ %o{i}, %round ], [ %b{i}, %loop ]" for i in streams)
    reads = "\n".join(
        f"  %at{i} = add i64 %i, {i}\n"
        f"  %p{i} = getelementptr {vector}, ptr %data, i64 %at{i}\n"
        f"  %v{i} = load {vector}, ptr %p{i}, align {lanes * 4}\n"
        f"  %b{i} = fadd {vector} %a{i}, %v{i}"
        for i in streams
    )
    sums = "\n".join(f"  %s{i + 1} = fadd {vector} %s{i}, %b{i + 1}" for i in range(STREAMS - 1))
    return f"""
define float @{name}(ptr %data, i64 %count, i64 %rounds) {{
entry:
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r.next, %again ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %round ], [ %next, %loop ]
{phis}
{reads}
  %next = add i64 %i, {STREAMS}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %again
again:
  %r.next = add i64 %r, 1
  %more.rounds = icmp slt i64 %r.next, %rounds
  br i1 %more.rounds, label %round, label %done
done:
  %s0 = fadd {vector} %b0, zeroinitializer
{sums}
  %result = extractelement {vector} %s{STREAMS - 1}, i32 0
  ret float %result
}}
"""
