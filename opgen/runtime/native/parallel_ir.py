"""The parallel loop, in LLVM IR: the one function behind word 0 of every kernel's arguments.

The process loads it (`opgen.runtime.threads`), and each C library links it, under the library's own prefix.

`opgen_parallel_for(body, context, begin, end, threads)` calls `body(context, b, e)` on disjoint pieces that cover begin
<= i < end.  There are T stretches, one for each thread: stretch t goes from begin + floor(n * t / T) to begin + floor(n
* (t + 1) / T), where n = end - begin.  Thread t first takes its own stretch, PIECES pieces one after the other, from
the front, so that it finds its data of the last call in its caches.  Then it takes the rest of the others', so that no
thread delays the loop for long.  A missing thread (fewer may run than requested) only delays its stretch longer.

OpenMP's runtimes end the process if a thread cannot be made.  So before a thread first requests a team of some size, as
many threads are made and ended.  If that fails, a pool is used, which works with any number of workers.

`opgen_parallel_for_parts(body, context, begin, end, threads, part)` calls `part(context, t, run, region)` once in each
thread t that joins, and `part` calls `run(region, t)`: so a library gives each thread its part of a workspace.
(`opgen_parallel_for` passes null, and the pieces run directly.)

`opgen_parallel_table` configures it, in words: [0] 0 serial, 1 OpenMP, 2 the pool; then the addresses of GOMP_parallel,
omp_get_thread_num and the functions of POSIX in `PTHREAD_FUNCTIONS`; and the key under which each thread keeps the
largest team that it had.  Its loader writes it, so that the code depends on no library.  The loader writes word 0 again
in a forked child, where OpenMP's threads do not exist.  The pool is in `pool_ir.py`.
"""

from __future__ import annotations

import platform

from opgen.runtime.native import pool_ir
from opgen.runtime.native.pool_ir import MAX_THREADS, MUTEX_BYTES, PREFIX, TABLE, word

FUNCTION = f"{PREFIX}_for"
PARTS = f"{PREFIX}_for_parts"
SYMBOLS = (FUNCTION, PARTS, TABLE, pool_ir.POOL, pool_ir.PREPARE, pool_ir.DISMISS)
SERIAL, OPENMP, PTHREAD = 0, 1, 2
PIECES = 8
"""Pieces of a stretch: taking one costs about 20 ns; a delayed thread delays the others by one at most."""
_LOOP = f"""\
; A stretch, in a cache line of its own: what is taken, its length, the length of a piece, where it begins.
%stretch = type {{ i64, i64, i64, i64, [4 x i64] }}

; A region: body, context, stretches, their number; how many threads have joined it, how many workers are at it, the
; next that may be joined; what each thread calls for its part (null: nothing).
%region = type {{ ptr, ptr, ptr, i64, i64, i32, ptr, ptr }}

; A loop that one thread runs: body, context, begin, end.
%range = type {{ ptr, ptr, i64, i64 }}

@{TABLE} = global [{pool_ir.TABLE_WORDS} x i64] zeroinitializer

; floor(n * t / T) as (n / T) * t + (n % T) * t / T, which does not overflow.
define internal i64 @stretch_start(i64 %count, i64 %t, i64 %threads) {{
entry:
  %quotient = udiv i64 %count, %threads
  %remainder = urem i64 %count, %threads
  %whole = mul i64 %quotient, %t
  %scaled = mul i64 %remainder, %t
  %part = udiv i64 %scaled, %threads
  %start = add i64 %whole, %part
  ret i64 %start
}}

define internal void @divide(ptr %stretches, i64 %begin, i64 %count, i64 %threads) {{
entry:
  br label %head
head:
  %t = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %t, %threads
  br i1 %more, label %one, label %done
one:
  %next = add i64 %t, 1
  %first = call i64 @stretch_start(i64 %count, i64 %t, i64 %threads)
  %last = call i64 @stretch_start(i64 %count, i64 %next, i64 %threads)
  %length = sub i64 %last, %first
  %up = add i64 %length, {PIECES - 1}
  %piece = udiv i64 %up, {PIECES}
  %start = add i64 %begin, %first
  %at = getelementptr %stretch, ptr %stretches, i64 %t
  %fields_1 = insertvalue %stretch zeroinitializer, i64 %length, 1
  %fields_2 = insertvalue %stretch %fields_1, i64 %piece, 2
  %fields_3 = insertvalue %stretch %fields_2, i64 %start, 3
  store %stretch %fields_3, ptr %at
  br label %head
done:
  ret void
}}

; Take pieces of a stretch until none is left.
define internal void @run_stretch(ptr %region, ptr %stretch) {{
entry:
  %body = load ptr, ptr %region
  %context_at = getelementptr %region, ptr %region, i64 0, i32 1
  %context = load ptr, ptr %context_at
  %length_at = getelementptr %stretch, ptr %stretch, i64 0, i32 1
  %length = load i64, ptr %length_at
  %piece_at = getelementptr %stretch, ptr %stretch, i64 0, i32 2
  %piece = load i64, ptr %piece_at
  %start_at = getelementptr %stretch, ptr %stretch, i64 0, i32 3
  %start = load i64, ptr %start_at
  br label %take
take:
  %taken = atomicrmw add ptr %stretch, i64 %piece monotonic
  %some = icmp slt i64 %taken, %length
  br i1 %some, label %run, label %done
run:
  %left = sub i64 %length, %taken
  %short = icmp slt i64 %left, %piece
  %size = select i1 %short, i64 %left, i64 %piece
  %first = add i64 %start, %taken
  %last = add i64 %first, %size
  call void %body(ptr %context, i64 %first, i64 %last)
  br label %take
done:
  ret void
}}

; The pieces that thread t takes: of its own stretch, then of the others' from the next on.
define internal void @run_stretches(ptr %region, i64 %t) {{
entry:
  %stretches_at = getelementptr %region, ptr %region, i64 0, i32 2
  %stretches = load ptr, ptr %stretches_at
  %count_at = getelementptr %region, ptr %region, i64 0, i32 3
  %count = load i64, ptr %count_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %done
one:
  %ahead = add i64 %t, %k
  %number = urem i64 %ahead, %count
  %stretch = getelementptr %stretch, ptr %stretches, i64 %number
  call void @run_stretch(ptr %region, ptr %stretch)
  %next = add i64 %k, 1
  br label %head
done:
  ret void
}}

; The work of thread t, within what it does for its part.
define internal void @run_thread(ptr %region, i64 %t) {{
entry:
  %part_at = getelementptr %region, ptr %region, i64 0, i32 7
  %part = load ptr, ptr %part_at
  %none = icmp eq ptr %part, null
  br i1 %none, label %directly, label %within
directly:
  call void @run_stretches(ptr %region, i64 %t)
  ret void
within:
  %context_at = getelementptr %region, ptr %region, i64 0, i32 1
  %context = load ptr, ptr %context_at
  call void %part(ptr %context, i64 %t, ptr @run_stretches, ptr %region)
  ret void
}}

define internal void @run_range(ptr %range, i64 %t) {{
entry:
  %fields = load %range, ptr %range
  %body = extractvalue %range %fields, 0
  %context = extractvalue %range %fields, 1
  %begin = extractvalue %range %fields, 2
  %end = extractvalue %range %fields, 3
  call void %body(ptr %context, i64 %begin, i64 %end)
  ret void
}}

define internal ptr @function(i64 %word) {{
entry:
  %at = getelementptr [{pool_ir.TABLE_WORDS} x i64], ptr @{TABLE}, i64 0, i64 %word
  %address = load i64, ptr %at
  %pointer = inttoptr i64 %address to ptr
  ret ptr %pointer
}}

define internal void @openmp_thread(ptr %region) {{
entry:
  %get_number = call ptr @function(i64 2)
  %number = call i32 %get_number()
  %t = sext i32 %number to i64
  call void @run_thread(ptr %region, i64 %t)
  ret void
}}

; A thread that is made for a trial: it waits until all are.
define internal ptr @trial_thread(ptr %mutex) {{
entry:
  %lock = call ptr @function(i64 {word("mutex_lock")})
  %unlock = call ptr @function(i64 {word("mutex_unlock")})
  %locked = call i32 %lock(ptr %mutex)
  %unlocked = call i32 %unlock(ptr %mutex)
  ret ptr null
}}

; Whether the calling thread can have a team of some size.
define internal i1 @can_have(i64 %threads) {{
entry:
  %get = call ptr @function(i64 {word("getspecific")})
  %key_at = getelementptr [{pool_ir.TABLE_WORDS} x i64], ptr @{TABLE}, i64 0, i64 {pool_ir.KEY}
  %key_64 = load i64, ptr %key_at
  %key = trunc i64 %key_64 to i32
  %had_word = call ptr %get(i32 %key)
  %had_before = ptrtoint ptr %had_word to i64
  %first = icmp eq i64 %had_before, 0
  %had = select i1 %first, i64 1, i64 %had_before
  %known = icmp sle i64 %threads, %had
  br i1 %known, label %yes, label %try
try:
  %wanted = sub i64 %threads, %had
  %handles = alloca i64, i64 %wanted
  %mutex = alloca [{MUTEX_BYTES} x i8], align 16
  store [{MUTEX_BYTES} x i8] zeroinitializer, ptr %mutex
  %create = call ptr @function(i64 {word("create")})
  %join = call ptr @function(i64 {word("join")})
  %lock = call ptr @function(i64 {word("mutex_lock")})
  %unlock = call ptr @function(i64 {word("mutex_unlock")})
  %locked = call i32 %lock(ptr %mutex)
  br label %start
start:
  %made = phi i64 [ 0, %try ], [ %made_next, %started ]
  %more = icmp slt i64 %made, %wanted
  br i1 %more, label %start_one, label %go
start_one:
  %handle = getelementptr i64, ptr %handles, i64 %made
  %status = call i32 %create(ptr %handle, ptr null, ptr @trial_thread, ptr %mutex)
  %created = icmp eq i32 %status, 0
  br i1 %created, label %started, label %go
started:
  %made_next = add i64 %made, 1
  br label %start
go:
  %unlocked = call i32 %unlock(ptr %mutex)
  br label %end
end:
  %t = phi i64 [ 0, %go ], [ %t_next, %end_one ]
  %left = icmp slt i64 %t, %made
  br i1 %left, label %end_one, label %told
end_one:
  %ending_at = getelementptr i64, ptr %handles, i64 %t
  %ending = load i64, ptr %ending_at
  %joined = call i32 %join(i64 %ending, ptr null)
  %t_next = add i64 %t, 1
  br label %end
told:
  br i1 %more, label %no, label %keep
keep:
  %set = call ptr @function(i64 {word("setspecific")})
  %word = inttoptr i64 %threads to ptr
  %kept = call i32 %set(i32 %key, ptr %word)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

define void @{FUNCTION}(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %threads) {{
entry:
  call void @{PARTS}(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %threads, ptr null)
  ret void
}}

define void @{PARTS}(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %threads, ptr %part) {{
entry:
  %region = alloca %region
  %count = sub i64 %end, %begin
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %plan, label %done
plan:
  %enough = icmp slt i64 %threads, %count
  %useful = select i1 %enough, i64 %threads, i64 %count
  %few = icmp slt i64 %useful, {MAX_THREADS}
  %team = select i1 %few, i64 %useful, i64 {MAX_THREADS}
  %alone = icmp sle i64 %team, 1
  %mode = load i64, ptr @{TABLE}
  %kind = select i1 %alone, i64 {SERIAL}, i64 %mode
  %in_parallel = icmp ne i64 %kind, {SERIAL}
  br i1 %in_parallel, label %share, label %serial
serial:
  %undivided = icmp eq ptr %part, null
  br i1 %undivided, label %whole, label %one_part
whole:
  call void %body(ptr %context, i64 %begin, i64 %end)
  br label %done
one_part:
  %range_1 = insertvalue %range zeroinitializer, ptr %body, 0
  %range_2 = insertvalue %range %range_1, ptr %context, 1
  %range_3 = insertvalue %range %range_2, i64 %begin, 2
  %range_4 = insertvalue %range %range_3, i64 %end, 3
  %range = alloca %range
  store %range %range_4, ptr %range
  call void %part(ptr %context, i64 0, ptr @run_range, ptr %range)
  br label %done
share:
  %stretches = alloca %stretch, i64 %team, align 64
  call void @divide(ptr %stretches, i64 %begin, i64 %count, i64 %team)
  %fields_1 = insertvalue %region zeroinitializer, ptr %body, 0
  %fields_2 = insertvalue %region %fields_1, ptr %context, 1
  %fields_3 = insertvalue %region %fields_2, ptr %stretches, 2
  %fields_4 = insertvalue %region %fields_3, i64 %team, 3
  %fields_5 = insertvalue %region %fields_4, ptr %part, 7
  store %region %fields_5, ptr %region
  %openmp_is_there = icmp eq i64 %kind, {OPENMP}
  br i1 %openmp_is_there, label %try, label %pthread
try:
  %there_are = call i1 @can_have(i64 %team)
  br i1 %there_are, label %openmp, label %pthread
openmp:
  %parallel = call ptr @function(i64 1)
  %team_32 = trunc i64 %team to i32
  call void %parallel(ptr @openmp_thread, ptr %region, i32 %team_32, i32 0)
  br label %done
pthread:
  call void @pool_region(ptr %region, i64 %team)
  br label %done
done:
  ret void
}}
"""


def text(prefix: str = PREFIX, architecture: str = platform.machine(), hidden: bool = False) -> str:
    """Return the module's text for an architecture; every symbol begins with a prefix.

    `hidden`: the symbols are visible only in the library that links the object code.
    """
    ir = f"{_LOOP}\n{pool_ir.text(architecture)}".replace(f"@{PREFIX}_", f"@{prefix}_")
    if not hidden:
        return ir
    return ir.replace("\ndefine void @", "\ndefine hidden void @").replace(" = global ", " = hidden global ")
