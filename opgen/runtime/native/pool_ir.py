"""The pool of the parallel loop, in LLVM IR: workers that persist, used unless OpenMP is requested.

A worker spins for a region for a while, then sleeps; it joins a region that a caller published, and takes pieces of its
stretches.  A caller does all of a region by itself if no worker comes.  So any number of workers is enough: none in a
forked child, none once the library that holds the pool is unloaded.  Workers block all signals, which are for the
program's own threads, except those of faults.

`opgen_parallel_prepare(processors)` resets the memory to a pool without workers: for the loader, and in a forked child.
`opgen_parallel_dismiss()` ends the workers, which finish their current piece; later loops have none.

This text is the second part of `parallel_ir.text`, and uses its functions and its table.
"""

from __future__ import annotations

import ctypes
import signal

PREFIX = "opgen_parallel"
"""Prefix of every symbol of the parallel loop."""
TABLE = f"{PREFIX}_table"
POOL = f"{PREFIX}_pool"
PREPARE = f"{PREFIX}_prepare"
DISMISS = f"{PREFIX}_dismiss"
MAX_THREADS = 1024
PTHREAD_FUNCTIONS = (
    *("create", "join", "mutex_init", "mutex_lock", "mutex_unlock", "getspecific", "setspecific"),
    *("cond_init", "cond_wait", "cond_signal", "cond_broadcast", "sigmask"),
)
"""POSIX functions whose addresses the table has, each named after `pthread_`."""
FIRST_FUNCTION = 3
"""Index of the table's word for the first of them."""
KEY = FIRST_FUNCTION + len(PTHREAD_FUNCTIONS)
TABLE_WORDS = KEY + 1
MUTEX_BYTES = 64
"""Size of the storage for a pthread_mutex_t, which is all zeros before its first use, or for a pthread_cond_t."""
SPINS = 2000
"""Number of polls, 40 to 140 cycles apart, before a thread sleeps: some 50 us, a few times the cost of waking it."""


class Pool(ctypes.Structure):
    """The pool's memory.

    `regions` may be joined, and `open` is set if there are any.  A thread polls `spins` times before it sleeps: not at
    all if there are as many workers as `processors`, or more.  `ended` is set at the end.
    """

    workers: int
    ended: int
    processors: int
    handles: ctypes.Array[ctypes.c_uint64]

    _fields_ = (
        ("lock", ctypes.c_char * MUTEX_BYTES),
        ("work", ctypes.c_char * MUTEX_BYTES),
        ("left", ctypes.c_char * MUTEX_BYTES),
        ("regions", ctypes.c_void_p),
        ("open", ctypes.c_int32),
        ("spins", ctypes.c_int32),
        ("asleep", ctypes.c_int32),
        ("workers", ctypes.c_int32),
        ("ended", ctypes.c_int32),
        ("processors", ctypes.c_int32),
        ("handles", ctypes.c_uint64 * MAX_THREADS),
    )


def word(name: str) -> int:
    """Return the word of the table that has the address of `pthread_NAME`."""
    return FIRST_FUNCTION + PTHREAD_FUNCTIONS.index(name)


def _at(field: str) -> str:
    """Return the address of a field."""
    return f"getelementptr (i8, ptr @{POOL}, i64 {getattr(Pool, field).offset})"


_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", ""), "aarch64": ("llvm.aarch64.hint", "i32 1")}
"""The hint that a polling thread gives its processor: a function of LLVM's, and its arguments."""

SIGSET_BYTES = 128
"""Size of a sigset_t of Linux's C libraries."""
SIG_SETMASK = 2
"""Linux's number of the operation that replaces the signal mask."""
_FAULTS = (signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
_BLOCKED = ~sum(1 << (number - 1) for number in _FAULTS)
"""The first 64 signals as workers block them: where a fault is blocked, the process ends without its handler."""

_TEXT = f"""\
@{POOL} = global [{ctypes.sizeof(Pool)} x i8] zeroinitializer, align 64

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Look for a while whether a number is zero, or is not.
define internal void @await(ptr %number, i1 %zero, i32 %spins) {{
entry:
  br label %head
head:
  %left = phi i32 [ %spins, %entry ], [ %fewer, %rest ]
  %more = icmp sgt i32 %left, 0
  br i1 %more, label %look, label %done
look:
  %found = load atomic i32, ptr %number acquire, align 4
  %is_zero = icmp eq i32 %found, 0
  %wanted = icmp eq i1 %is_zero, %zero
  br i1 %wanted, label %done, label %rest
rest:
  call void @pause()
  %fewer = sub i32 %left, 1
  br label %head
done:
  ret void
}}

define internal void @hold() {{
entry:
  %lock = call ptr @function(i64 {word("mutex_lock")})
  %locked = call i32 %lock(ptr @{POOL})
  ret void
}}

define internal void @release() {{
entry:
  %unlock = call ptr @function(i64 {word("mutex_unlock")})
  %unlocked = call i32 %unlock(ptr @{POOL})
  ret void
}}

define internal void @sleep(ptr %condition) {{
entry:
  %wait = call ptr @function(i64 {word("cond_wait")})
  %waited = call i32 %wait(ptr %condition, ptr @{POOL})
  ret void
}}

define internal void @add_to(ptr %number, i32 %more) {{
entry:
  %before = load i32, ptr %number
  %after = add i32 %before, %more
  store i32 %after, ptr %number
  ret void
}}

; Take a region from those that may be joined, if it is among them.  The lock is held, here and below.
define internal void @close_region(ptr %region) {{
entry:
  br label %head
head:
  %at = phi ptr [ {_at("regions")}, %entry ], [ %next, %ahead ]
  %one = load ptr, ptr %at
  %none = icmp eq ptr %one, null
  br i1 %none, label %tell, label %look
look:
  %found = icmp eq ptr %one, %region
  %next = getelementptr %region, ptr %one, i64 0, i32 6
  br i1 %found, label %take, label %ahead
ahead:
  br label %head
take:
  %later = load ptr, ptr %next
  store ptr %later, ptr %at
  br label %tell
tell:
  %first = load ptr, ptr {_at("regions")}
  %some = icmp ne ptr %first, null
  %open = zext i1 %some to i32
  store atomic i32 %open, ptr {_at("open")} release, align 4
  ret void
}}

; A worker's part in a region.
define internal void @join_region(ptr %region) {{
entry:
  %count_at = getelementptr %region, ptr %region, i64 0, i32 3
  %count = load i64, ptr %count_at
  %joined_at = getelementptr %region, ptr %region, i64 0, i32 4
  %t = load i64, ptr %joined_at
  %joined = add i64 %t, 1
  store i64 %joined, ptr %joined_at
  %active_at = getelementptr %region, ptr %region, i64 0, i32 5
  %active = atomicrmw add ptr %active_at, i32 1 monotonic
  %full = icmp eq i64 %joined, %count
  br i1 %full, label %close, label %work
close:
  call void @close_region(ptr %region)
  br label %work
work:
  call void @release()
  call void @run_thread(ptr %region, i64 %t)
  call void @hold()
  %left = atomicrmw sub ptr %active_at, i32 1 release
  %broadcast = call ptr @function(i64 {word("cond_broadcast")})
  %told = call i32 %broadcast(ptr {_at("left")})
  ret void
}}

define internal ptr @serve(ptr %unused) {{
entry:
  call void @hold()
  br label %head
head:
  %ended = load i32, ptr {_at("ended")}
  %end = icmp ne i32 %ended, 0
  br i1 %end, label %done, label %look
look:
  %region = load ptr, ptr {_at("regions")}
  %some = icmp ne ptr %region, null
  br i1 %some, label %join, label %wait
join:
  call void @join_region(ptr %region)
  br label %head
wait:
  %spins = load i32, ptr {_at("spins")}
  call void @release()
  call void @await(ptr {_at("open")}, i1 false, i32 %spins)
  call void @hold()
  %found = load ptr, ptr {_at("regions")}
  %still_none = icmp eq ptr %found, null
  %ended_now = load i32, ptr {_at("ended")}
  %goes_on = icmp eq i32 %ended_now, 0
  %tired = and i1 %still_none, %goes_on
  br i1 %tired, label %sleep, label %head
sleep:
  call void @add_to(ptr {_at("asleep")}, i32 1)
  call void @sleep(ptr {_at("work")})
  call void @add_to(ptr {_at("asleep")}, i32 -1)
  br label %head
done:
  call void @release()
  ret ptr null
}}

; See that there are so many workers, or as many as can be had.
define internal void @hire(i64 %wanted) {{
entry:
  %there_now = load i32, ptr {_at("workers")}
  %there_are = sext i32 %there_now to i64
  %enough = icmp sge i64 %there_are, %wanted
  br i1 %enough, label %told, label %make
told:
  ret void
make:
  %all = alloca [{SIGSET_BYTES} x i8], align 8
  %before = alloca [{SIGSET_BYTES} x i8], align 8
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 {SIGSET_BYTES}, i1 false)
  store i64 {_BLOCKED}, ptr %all
  %mask = call ptr @function(i64 {word("sigmask")})
  %masked = call i32 %mask(i32 {SIG_SETMASK}, ptr %all, ptr %before)
  %create = call ptr @function(i64 {word("create")})
  br label %head
head:
  %workers = load i32, ptr {_at("workers")}
  %there = sext i32 %workers to i64
  %more = icmp slt i64 %there, %wanted
  br i1 %more, label %one, label %done
one:
  %handle = getelementptr i64, ptr {_at("handles")}, i64 %there
  %status = call i32 %create(ptr %handle, ptr null, ptr @serve, ptr null)
  %created = icmp eq i32 %status, 0
  br i1 %created, label %count, label %done
count:
  call void @add_to(ptr {_at("workers")}, i32 1)
  br label %head
done:
  %unmasked = call i32 %mask(i32 {SIG_SETMASK}, ptr %before, ptr null)
  %now = load i32, ptr {_at("workers")}
  %processors = load i32, ptr {_at("processors")}
  %room = icmp slt i32 %now, %processors
  %spins = select i1 %room, i32 {SPINS}, i32 0
  store i32 %spins, ptr {_at("spins")}
  ret void
}}

; Lay a region out for the pool, and wake those who sleep: as many as it has room for.
define internal void @open_region(ptr %region, i64 %helpers) {{
entry:
  call void @hire(i64 %helpers)
  %later_at = getelementptr %region, ptr %region, i64 0, i32 6
  %later = load ptr, ptr {_at("regions")}
  store ptr %later, ptr %later_at
  store ptr %region, ptr {_at("regions")}
  store atomic i32 1, ptr {_at("open")} release, align 4
  %asleep_32 = load i32, ptr {_at("asleep")}
  %asleep = sext i32 %asleep_32 to i64
  %enough = icmp slt i64 %asleep, %helpers
  %calls = select i1 %enough, i64 %asleep, i64 %helpers
  %signal = call ptr @function(i64 {word("cond_signal")})
  br label %head
head:
  %n = phi i64 [ %calls, %entry ], [ %fewer, %one ]
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %one, label %done
one:
  %told = call i32 %signal(ptr {_at("work")})
  %fewer = sub i64 %n, 1
  br label %head
done:
  ret void
}}

define internal void @pool_region(ptr %region, i64 %threads) {{
entry:
  %joined_at = getelementptr %region, ptr %region, i64 0, i32 4
  store i64 1, ptr %joined_at
  %active_at = getelementptr %region, ptr %region, i64 0, i32 5
  store i32 0, ptr %active_at
  call void @hold()
  %ended = load i32, ptr {_at("ended")}
  %end = icmp ne i32 %ended, 0
  br i1 %end, label %own, label %open
open:
  %helpers = sub i64 %threads, 1
  call void @open_region(ptr %region, i64 %helpers)
  br label %own
own:
  %spins = load i32, ptr {_at("spins")}
  call void @release()
  call void @run_thread(ptr %region, i64 0)
  call void @hold()
  call void @close_region(ptr %region)
  call void @release()
  call void @await(ptr %active_at, i1 true, i32 %spins)
  call void @hold()
  br label %head
head:
  %active = load atomic i32, ptr %active_at acquire, align 4
  %busy = icmp ne i32 %active, 0
  br i1 %busy, label %wait, label %done
wait:
  call void @sleep(ptr {_at("left")})
  br label %head
done:
  call void @release()
  ret void
}}

define void @{PREPARE}(i32 %processors) {{
entry:
  call void @llvm.memset.p0.i64(ptr @{POOL}, i8 0, i64 {ctypes.sizeof(Pool)}, i1 false)
  %new_mutex = call ptr @function(i64 {word("mutex_init")})
  %new_condition = call ptr @function(i64 {word("cond_init")})
  %lock = call i32 %new_mutex(ptr {_at("lock")}, ptr null)
  %work = call i32 %new_condition(ptr {_at("work")}, ptr null)
  %left = call i32 %new_condition(ptr {_at("left")}, ptr null)
  store i32 %processors, ptr {_at("processors")}
  ret void
}}

define void @{DISMISS}() {{
entry:
  call void @hold()
  %workers = load i32, ptr {_at("workers")}
  store i32 0, ptr {_at("workers")}
  store i32 1, ptr {_at("ended")}
  %broadcast = call ptr @function(i64 {word("cond_broadcast")})
  %told = call i32 %broadcast(ptr {_at("work")})
  call void @release()
  %join = call ptr @function(i64 {word("join")})
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i32 %k, %workers
  br i1 %more, label %one, label %done
one:
  %handle_at = getelementptr i64, ptr {_at("handles")}, i32 %k
  %handle = load i64, ptr %handle_at
  %joined = call i32 %join(i64 %handle, ptr null)
  %next = add i32 %k, 1
  br label %head
done:
  ret void
}}
"""


def text(architecture: str) -> str:
    """Return the text for an architecture (as `platform.machine()` names it)."""
    function, given = _PAUSES.get(architecture, ("llvm.donothing", ""))
    declared = f"declare void @{function}({given.split()[0] if given else ''})"
    return (
        f"{_TEXT}\n{declared}\n\ndefine internal void @pause() {{\n  call void @{function}({given})\n  ret void\n}}\n"
    )
