"""Arenas for concurrent runs, and the function by which the launcher runs a program, in LLVM IR.

`i32 opgen_program_run(ptr words)` runs a program as if it were a kernel.  Words 0 and 1 are those of any kernel
(`opgen.runtime.native.words`).  Word 2 is the address of a record, and the addresses of inputs and outputs follow.  It
takes an arena of the pool for the run.  Its status is that of the entry, or NO_ARENA if no free arena is large enough;
then nothing has happened.

A pool has SLOTS slots of a cache line each: 1 while it is in use, the address of an arena, its bytes.

`i64 opgen_arena_take(ptr pool, i64 first, i64 end, i64 bytes)` takes a slot with at least `bytes` bytes.  It searches
from `first` up to but not including `end` (at least one slot), and returns the slot's number or -1.

`void opgen_arena_give(ptr pool, i64 slot)` returns the slot.
"""

from __future__ import annotations

RUN, TAKE, GIVE = "opgen_program_run", "opgen_arena_take", "opgen_arena_give"
NO_ARENA = -1
SLOTS = 64
SLOT_WORDS = 8
RECORD_WORDS = 5
FIRST_TENSOR = 3
"""Index of the word with the first input's address."""

IR = f"""\
; A record: the entry, addresses of kernels, addresses of weights, pool of arenas, bytes of arena (0: none is needed).
%record = type {{ ptr, ptr, ptr, ptr, i64 }}
%slot = type {{ i64, ptr, i64, [5 x i64] }}

define i64 @{TAKE}(ptr %pool, i64 %first, i64 %end, i64 %bytes) {{
begin:
  br label %look
look:
  %k = phi i64 [ %first, %begin ], [ %k_next, %next ]
  %state_at = getelementptr %slot, ptr %pool, i64 %k
  %state = load atomic i64, ptr %state_at monotonic, align 8
  %is_free = icmp eq i64 %state, 0
  br i1 %is_free, label %try, label %next
try:
  %pair = cmpxchg ptr %state_at, i64 0, i64 1 acquire monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %measure, label %next
measure:
  %size_at = getelementptr %slot, ptr %pool, i64 %k, i32 2
  %size = load i64, ptr %size_at
  %enough = icmp sge i64 %size, %bytes
  br i1 %enough, label %done, label %give
give:
  store atomic i64 0, ptr %state_at release, align 8
  br label %next
next:
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, %end
  br i1 %more, label %look, label %none
none:
  ret i64 -1
done:
  ret i64 %k
}}

define void @{GIVE}(ptr %pool, i64 %k) {{
begin:
  %state_at = getelementptr %slot, ptr %pool, i64 %k
  store atomic i64 0, ptr %state_at release, align 8
  ret void
}}

define i32 @{RUN}(ptr %words) {{
begin:
  %parallel_for = load ptr, ptr %words
  %threads_at = getelementptr i64, ptr %words, i64 1
  %threads = load i64, ptr %threads_at
  %record_at = getelementptr i64, ptr %words, i64 2
  %record = load ptr, ptr %record_at
  %tensors = getelementptr i64, ptr %words, i64 {FIRST_TENSOR}
  %entry = load ptr, ptr %record
  %kernels_at = getelementptr %record, ptr %record, i64 0, i32 1
  %kernels = load ptr, ptr %kernels_at
  %weights_at = getelementptr %record, ptr %record, i64 0, i32 2
  %weights = load ptr, ptr %weights_at
  %pool_at = getelementptr %record, ptr %record, i64 0, i32 3
  %pool = load ptr, ptr %pool_at
  %bytes_at = getelementptr %record, ptr %record, i64 0, i32 4
  %bytes = load i64, ptr %bytes_at
  %needs_none = icmp eq i64 %bytes, 0
  br i1 %needs_none, label %bare, label %take
bare:
  %status_bare = call i32 %entry(ptr %kernels, ptr %tensors, ptr %weights, ptr null, ptr %parallel_for, i64 %threads)
  ret i32 %status_bare
take:
  %slot = call i64 @{TAKE}(ptr %pool, i64 0, i64 {SLOTS}, i64 %bytes)
  %none = icmp slt i64 %slot, 0
  br i1 %none, label %refuse, label %go
refuse:
  ret i32 {NO_ARENA}
go:
  %arena_at = getelementptr %slot, ptr %pool, i64 %slot, i32 1
  %arena = load ptr, ptr %arena_at
  %status = call i32 %entry(ptr %kernels, ptr %tensors, ptr %weights, ptr %arena, ptr %parallel_for, i64 %threads)
  call void @{GIVE}(ptr %pool, i64 %slot)
  ret i32 %status
}}
"""
