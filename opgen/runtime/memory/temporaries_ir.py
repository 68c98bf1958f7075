"""Memory for the temporary buffers of kernels, in LLVM IR: large blocks are kept for the next call.

`ptr opgen_take(i64 bytes)` and `void opgen_give(ptr block)` replace the C library's malloc and free in kernels.  The C
library requests each block of LARGE bytes or more from the system and returns it at once.  So all its pages are mapped
and cleared again for every call, which takes longer than many kernels.  These functions keep SLOTS slots.  A slot is
empty, busy (its block is in use, or the slot is being changed), or idle.  The thread that makes it busy owns it, so
that no lock is needed, and none stays locked in a forked child.  Idle blocks are bounded (KEPT).  Generated C libraries
have the same code (`bindings/c/templates/temporaries.c.jinja`).
"""

from __future__ import annotations

TAKE, GIVE, MOST = "opgen_take", "opgen_give", "opgen_most_idle"
LARGE = 32 << 20
"""Bytes from which on blocks are kept."""
KEPT = 1 << 30
"""The most bytes of idle blocks, and at most 1/SHARE of the available memory: word MOST holds the bound."""
SHARE = 8
SLOTS = 32
"""Number of large blocks kept at once; further ones are the C library's."""
EMPTY, BUSY, IDLE = 0, 1, 2
SLACK = 4
"""A block may be larger than requested by one part in this number."""

IR = f"""\
; State, block, its bytes.
%slot = type {{ i64, ptr, i64, [5 x i64] }}

@slots = internal global [{SLOTS} x %slot] zeroinitializer, align 64
@{MOST} = global i64 {KEPT}
@idle = internal global i64 0
@blocks = internal global i64 0

declare ptr @malloc(i64)
declare void @free(ptr)

; Make a slot busy that was in some state; false if it is not in it any more.
define internal i1 @own(ptr %slot, i64 %state) {{
entry:
  %found = load atomic i64, ptr %slot monotonic, align 8
  %is = icmp eq i64 %found, %state
  br i1 %is, label %try, label %no
try:
  %pair = cmpxchg ptr %slot, i64 %state, i64 {BUSY} acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  ret i1 %got
no:
  ret i1 false
}}

; Free the block of a slot that was idle and is owned; the slot stays owned.
define internal void @drop(ptr %slot) {{
entry:
  %block_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %block = load atomic ptr, ptr %block_at monotonic, align 8
  %size_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  %size = load i64, ptr %size_at
  store atomic ptr null, ptr %block_at monotonic, align 8
  %before = atomicrmw sub ptr @idle, i64 %size monotonic
  %left = atomicrmw sub ptr @blocks, i64 1 monotonic
  call void @free(ptr %block)
  ret void
}}

; Free idle blocks until those that are left take no more than so many bytes.
define internal void @trim(i64 %most) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %ahead ]
  %more = icmp slt i64 %k, {SLOTS}
  br i1 %more, label %look, label %done
look:
  %idle = load atomic i64, ptr @idle monotonic, align 8
  %enough = icmp sle i64 %idle, %most
  br i1 %enough, label %done, label %one
one:
  %slot = getelementptr %slot, ptr @slots, i64 %k
  %owned = call i1 @own(ptr %slot, i64 {IDLE})
  br i1 %owned, label %take, label %ahead
take:
  call void @drop(ptr %slot)
  store atomic i64 {EMPTY}, ptr %slot release, align 8
  br label %ahead
ahead:
  %next = add i64 %k, 1
  br label %head
done:
  ret void
}}

; An idle block that is large enough, and not much larger; null if there is none.
define internal ptr @recall(i64 %bytes) {{
entry:
  %slack = udiv i64 %bytes, {SLACK}
  %most = add i64 %bytes, %slack
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %ahead ]
  %more = icmp slt i64 %k, {SLOTS}
  br i1 %more, label %look, label %none
look:
  %slot = getelementptr %slot, ptr @slots, i64 %k
  %owned = call i1 @own(ptr %slot, i64 {IDLE})
  br i1 %owned, label %measure, label %ahead
measure:
  %size_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  %size = load i64, ptr %size_at
  %holds = icmp uge i64 %size, %bytes
  %close = icmp ule i64 %size, %most
  %fits = and i1 %holds, %close
  br i1 %fits, label %found, label %leave
leave:
  store atomic i64 {IDLE}, ptr %slot release, align 8
  br label %ahead
ahead:
  %next = add i64 %k, 1
  br label %head
found:
  %before = atomicrmw sub ptr @idle, i64 %size monotonic
  %block_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %block = load atomic ptr, ptr %block_at monotonic, align 8
  ret ptr %block
none:
  ret ptr null
}}

; Note a new block in a slot that is empty, if there is one.
define internal void @note(ptr %block, i64 %bytes) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %ahead ]
  %more = icmp slt i64 %k, {SLOTS}
  br i1 %more, label %look, label %done
look:
  %slot = getelementptr %slot, ptr @slots, i64 %k
  %owned = call i1 @own(ptr %slot, i64 {EMPTY})
  br i1 %owned, label %keep, label %ahead
ahead:
  %next = add i64 %k, 1
  br label %head
keep:
  %size_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  store i64 %bytes, ptr %size_at
  %before = atomicrmw add ptr @blocks, i64 1 monotonic
  %block_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  store atomic ptr %block, ptr %block_at monotonic, align 8
  ret void
done:
  ret void
}}

define internal ptr @take_large(i64 %bytes) noinline {{
entry:
  %kept = call ptr @recall(i64 %bytes)
  %some = icmp ne ptr %kept, null
  br i1 %some, label %again, label %ask
again:
  ret ptr %kept
ask:
  %first = call ptr @malloc(i64 %bytes)
  %full = icmp eq ptr %first, null
  br i1 %full, label %trim, label %note
trim:
  call void @trim(i64 0)
  %second = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %second, null
  br i1 %none, label %refuse, label %note
note:
  %block = phi ptr [ %first, %ask ], [ %second, %trim ]
  call void @note(ptr %block, i64 %bytes)
  ret ptr %block
refuse:
  ret ptr null
}}

define internal void @give_any(ptr %block) noinline {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %ahead ]
  %more = icmp slt i64 %k, {SLOTS}
  br i1 %more, label %look, label %other
look:
  %slot = getelementptr %slot, ptr @slots, i64 %k
  %block_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %its = load atomic ptr, ptr %block_at monotonic, align 8
  %own = icmp eq ptr %its, %block
  br i1 %own, label %found, label %ahead
ahead:
  %next = add i64 %k, 1
  br label %head
other:
  call void @free(ptr %block)
  ret void
found:
  %size_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  %size = load i64, ptr %size_at
  %before = atomicrmw add ptr @idle, i64 %size monotonic
  %most = load i64, ptr @{MOST}
  %large = icmp ugt i64 %size, %most
  br i1 %large, label %let_go, label %keep
let_go:
  call void @drop(ptr %slot)
  store atomic i64 {EMPTY}, ptr %slot release, align 8
  ret void
keep:
  call void @trim(i64 %most)
  store atomic i64 {IDLE}, ptr %slot release, align 8
  ret void
}}

define ptr @{TAKE}(i64 %bytes) {{
entry:
  %small = icmp ult i64 %bytes, {LARGE}
  br i1 %small, label %plain, label %large
plain:
  %block = call ptr @malloc(i64 %bytes)
  ret ptr %block
large:
  %kept = call ptr @take_large(i64 %bytes)
  ret ptr %kept
}}

define void @{GIVE}(ptr %block) {{
entry:
  %blocks = load atomic i64, ptr @blocks monotonic, align 8
  %none = icmp eq i64 %blocks, 0
  br i1 %none, label %plain, label %look
plain:
  call void @free(ptr %block)
  ret void
look:
  call void @give_any(ptr %block)
  ret void
}}
"""
