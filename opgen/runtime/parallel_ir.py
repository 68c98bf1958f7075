"""The parallel loop, in LLVM IR: the one function behind word 0 of every kernel's arguments.

`opgen_parallel_for(body, context, begin, end, threads)` calls `body(context, b, e)` on disjoint stretches that cover
begin <= i < end.  Thread t of T has the stretch from begin + floor(n * t / T) to begin + floor(n * (t + 1) / T), where
n = end - begin and T is the number of threads that there really are, which may be fewer than were asked for.

`opgen_parallel_table` says how, in words: [0] 0 serial, 1 OpenMP, 2 a POSIX thread each; then the addresses of
GOMP_parallel, omp_get_thread_num, omp_get_num_threads, pthread_create, pthread_join.  It is written by the loader, so
the code itself depends on no library; and word 0 is rewritten in a forked child, where OpenMP's threads do not exist.
A POSIX thread that cannot be created has its stretch run by the caller.
"""

from __future__ import annotations

FUNCTION = "opgen_parallel_for"
TABLE = "opgen_parallel_table"
SERIAL, OPENMP, PTHREAD = 0, 1, 2
TABLE_WORDS = 6
MAX_THREADS = 1024

IR = f"""\
; A region: body, context, begin, number of iterations.  A worker: region, t, T, handle, 1 if it was started.
%region = type {{ ptr, ptr, i64, i64 }}
%worker = type {{ ptr, i64, i64, i64, i64 }}

@{TABLE} = global [{TABLE_WORDS} x i64] zeroinitializer

; begin + floor(n * t / T) as begin + (n / T) * t + (n % T) * t / T, which does not overflow.
define internal i64 @chunk_start(ptr %region, i64 %t, i64 %threads) {{
entry:
  %begin_at = getelementptr %region, ptr %region, i64 0, i32 2
  %begin = load i64, ptr %begin_at
  %count_at = getelementptr %region, ptr %region, i64 0, i32 3
  %count = load i64, ptr %count_at
  %quotient = udiv i64 %count, %threads
  %remainder = urem i64 %count, %threads
  %whole = mul i64 %quotient, %t
  %scaled = mul i64 %remainder, %t
  %part = udiv i64 %scaled, %threads
  %offset = add i64 %whole, %part
  %start = add i64 %begin, %offset
  ret i64 %start
}}

define internal void @run_chunk(ptr %region, i64 %t, i64 %threads) {{
entry:
  %next = add i64 %t, 1
  %first = call i64 @chunk_start(ptr %region, i64 %t, i64 %threads)
  %last = call i64 @chunk_start(ptr %region, i64 %next, i64 %threads)
  %some = icmp slt i64 %first, %last
  br i1 %some, label %run, label %done
run:
  %body = load ptr, ptr %region
  %context_at = getelementptr %region, ptr %region, i64 0, i32 1
  %context = load ptr, ptr %context_at
  call void %body(ptr %context, i64 %first, i64 %last)
  br label %done
done:
  ret void
}}

define internal ptr @function(i64 %word) {{
entry:
  %at = getelementptr [{TABLE_WORDS} x i64], ptr @{TABLE}, i64 0, i64 %word
  %address = load i64, ptr %at
  %pointer = inttoptr i64 %address to ptr
  ret ptr %pointer
}}

define internal void @openmp_thread(ptr %region) {{
entry:
  %get_number = call ptr @function(i64 2)
  %number = call i32 %get_number()
  %get_count = call ptr @function(i64 3)
  %count = call i32 %get_count()
  %t = sext i32 %number to i64
  %threads = sext i32 %count to i64
  call void @run_chunk(ptr %region, i64 %t, i64 %threads)
  ret void
}}

define internal ptr @pthread_thread(ptr %worker) {{
entry:
  %region = load ptr, ptr %worker
  %t_at = getelementptr %worker, ptr %worker, i64 0, i32 1
  %t = load i64, ptr %t_at
  %threads_at = getelementptr %worker, ptr %worker, i64 0, i32 2
  %threads = load i64, ptr %threads_at
  call void @run_chunk(ptr %region, i64 %t, i64 %threads)
  ret ptr null
}}

define internal void @pthread_region(ptr %region, i64 %threads) {{
entry:
  %workers = alloca %worker, i64 %threads
  %create = call ptr @function(i64 4)
  %join = call ptr @function(i64 5)
  br label %start
start:
  %t = phi i64 [ 1, %entry ], [ %t_next, %start_next ]
  %more = icmp slt i64 %t, %threads
  br i1 %more, label %start_one, label %own
start_one:
  %worker = getelementptr %worker, ptr %workers, i64 %t
  %handle = getelementptr %worker, ptr %worker, i64 0, i32 3
  %started_at = getelementptr %worker, ptr %worker, i64 0, i32 4
  %fields_1 = insertvalue %worker zeroinitializer, ptr %region, 0
  %fields_2 = insertvalue %worker %fields_1, i64 %t, 1
  %fields_3 = insertvalue %worker %fields_2, i64 %threads, 2
  store %worker %fields_3, ptr %worker
  %status = call i32 %create(ptr %handle, ptr null, ptr @pthread_thread, ptr %worker)
  %created = icmp eq i32 %status, 0
  br i1 %created, label %mark, label %start_next
mark:
  store i64 1, ptr %started_at
  br label %start_next
start_next:
  %t_next = add i64 %t, 1
  br label %start
own:
  call void @run_chunk(ptr %region, i64 0, i64 %threads)
  br label %finish
finish:
  %u = phi i64 [ 1, %own ], [ %u_next, %finish_next ]
  %left = icmp slt i64 %u, %threads
  br i1 %left, label %finish_one, label %done
finish_one:
  %ending = getelementptr %worker, ptr %workers, i64 %u
  %was_started_at = getelementptr %worker, ptr %ending, i64 0, i32 4
  %was_started = load i64, ptr %was_started_at
  %running = icmp ne i64 %was_started, 0
  br i1 %running, label %wait, label %instead
wait:
  %ending_handle_at = getelementptr %worker, ptr %ending, i64 0, i32 3
  %ending_handle = load i64, ptr %ending_handle_at
  %joined = call i32 %join(i64 %ending_handle, ptr null)
  br label %finish_next
instead:
  call void @run_chunk(ptr %region, i64 %u, i64 %threads)
  br label %finish_next
finish_next:
  %u_next = add i64 %u, 1
  br label %finish
done:
  ret void
}}

define void @{FUNCTION}(ptr %body, ptr %context, i64 %begin, i64 %end, i64 %threads) {{
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
  %fields_1 = insertvalue %region zeroinitializer, ptr %body, 0
  %fields_2 = insertvalue %region %fields_1, ptr %context, 1
  %fields_3 = insertvalue %region %fields_2, i64 %begin, 2
  %fields_4 = insertvalue %region %fields_3, i64 %count, 3
  store %region %fields_4, ptr %region
  switch i64 %kind, label %serial [ i64 {OPENMP}, label %openmp
                                    i64 {PTHREAD}, label %pthread ]
serial:
  call void %body(ptr %context, i64 %begin, i64 %end)
  br label %done
openmp:
  %parallel = call ptr @function(i64 1)
  %team_32 = trunc i64 %team to i32
  call void %parallel(ptr @openmp_thread, ptr %region, i32 %team_32, i32 0)
  br label %done
pthread:
  call void @pthread_region(ptr %region, i64 %team)
  br label %done
done:
  ret void
}}
"""
