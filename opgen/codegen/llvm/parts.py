"""The parts of a workspace that the threads of a parallel loop take, one a piece of the loop at a time.

There are never more running pieces than threads, so there is a free part whenever a piece begins.  A bit for each part
says that it is taken, in words on the stack of the thread that started the loop.  Bits beyond the number of threads are
taken from the beginning.
"""

from __future__ import annotations

from opgen.codegen.llvm.function import Module
from opgen.codegen.llvm.writer import Writer

WORDS = 16
"""Of 64 bits each: parts for as many threads as share a loop at most (`opgen.runtime.native.parallel_ir`)."""

_OPEN = """\
; No part is taken, and there are as many as threads.
define internal void @{name}(ptr %taken, i64 %threads) #0 {{
entry:
  br label %head
head:
  %w = phi i64 [ 0, %entry ], [ %w.next, %head ]
  %first = mul i64 %w, 64
  %left = sub i64 %threads, %first
  %some = icmp sgt i64 %left, 0
  %few = icmp slt i64 %left, 64
  %partly = and i1 %some, %few
  %shift = select i1 %partly, i64 %left, i64 0
  %high = shl i64 -1, %shift
  %beyond = select i1 %few, i64 %high, i64 0
  %mask = select i1 %some, i64 %beyond, i64 -1
  %at = getelementptr i64, ptr %taken, i64 %w
  store i64 %mask, ptr %at
  %w.next = add i64 %w, 1
  %more = icmp slt i64 %w.next, {words}
  br i1 %more, label %head, label %done
done:
  ret void
}}"""

_TAKE = """\
; The number of a part that nobody has, now taken.
define internal i64 @{name}(ptr %taken) #0 {{
entry:
  br label %look
look:
  %w = phi i64 [ 0, %entry ], [ %w.next, %full ], [ %w, %try ]
  %at = getelementptr i64, ptr %taken, i64 %w
  %mask = load atomic i64, ptr %at monotonic, align 8
  %free = xor i64 %mask, -1
  %none = icmp eq i64 %free, 0
  br i1 %none, label %full, label %try
full:
  %w.more = add i64 %w, 1
  %w.next = and i64 %w.more, {last}
  br label %look
try:
  %bit = call i64 @llvm.cttz.i64(i64 %free, i1 true)
  %one = shl i64 1, %bit
  %with = or i64 %mask, %one
  %pair = cmpxchg ptr %at, i64 %mask, i64 %with acquire monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %done, label %look
done:
  %before = mul i64 %w, 64
  %part = add i64 %before, %bit
  ret i64 %part
}}"""

_GIVE = """\
; A part is free again.
define internal void @{name}(ptr %taken, i64 %part) #0 {{
entry:
  %w = lshr i64 %part, 6
  %bit = and i64 %part, 63
  %one = shl i64 1, %bit
  %others = xor i64 %one, -1
  %at = getelementptr i64, ptr %taken, i64 %w
  %before = atomicrmw and ptr %at, i64 %others release
  ret void
}}"""


def opened(module: Module, w: Writer, taken: str, threads: str) -> None:
    """Begin a loop: all parts are free.  `taken` points to WORDS words."""
    w.line(f"call void @{_helper(module, 'parts.open', _OPEN)}(ptr {taken}, i64 {threads})")


def take(module: Module, w: Writer, taken: str) -> str:
    """Return the number of a part for a piece of the loop."""
    module.declare("llvm.cttz.i64", "i64 @llvm.cttz.i64(i64, i1)")
    return w.define("part", f"call i64 @{_helper(module, 'parts.take', _TAKE)}(ptr {taken})")


def give(module: Module, w: Writer, taken: str, part: str) -> None:
    """Give a part back when its piece is done."""
    w.line(f"call void @{_helper(module, 'parts.give', _GIVE)}(ptr {taken}, i64 {part})")


def _helper(module: Module, name: str, text: str) -> str:
    module.helpers.setdefault(name, text.format(name=name, words=WORDS, last=WORDS - 1))
    return name
