"""The launcher, in LLVM IR: the code that a repeated call runs between its arrays and its kernel, instead of Python.

`opgen_launch(self, args, count)` is a function of CPython's (METH_FASTCALL).  `self` is a numpy array of the words of a
`%plan`; `args` are the tensors, then an array for each result; None for the only result requests a new one.  It returns
the (first) result, or None for anything that the plan does not cover: an object that is not an array, another type or
shape, an array that kernels cannot use in place, results that overlap another array, a changed number of threads, no
memory.  After None nothing has happened, except that the caller's results may hold anything.

Python's other threads run while the kernel does.  CPython's and numpy's symbols are reached through
`opgen_launch_table`, which the loader fills, so the code itself depends on no library:

    [0] numpy.ndarray  [1] PyArray_NewFromDescr  [2] Py_IncRef  [3] Py_DecRef  [4] PyEval_SaveThread
    [5] PyEval_RestoreThread  [6] PyErr_Clear  [7] None  [8] the address of the generation of thread numbers
    [9] numpy's type of bytes  [10] PyArray_SetBaseObject

A new result of ALIGNED_FROM bytes or more starts on a cache line, which numpy's own allocation does not guarantee: it
is an array over a larger one of bytes.
"""

from __future__ import annotations

FUNCTION = "opgen_launch"
TABLE = "opgen_launch_table"
TABLE_WORDS = 11
PLAN_WORDS = 7
ENTRY_WORDS = 7
ALIGNMENT = 64
ALIGNED_FROM = 4096
"""Bytes from which on a new result starts on a cache line: the work on a smaller one is too short to gain by it."""
CARRAY = 0x1 | 0x100 | 0x400
"""numpy's flags of an array that is C-contiguous, aligned and writeable."""
UNREAD = -1
"""Replaces the number of a kernel's word for a tensor that the kernel does not read."""

IR = f"""\
; A plan: the kernel, how many words it takes, those words but for addresses, tensors, results, generation, entries.
%plan = type {{ ptr, i64, ptr, i64, i64, i64, ptr }}

; An array of a call: the object of its type, dimensions, their sizes, flags that must be set, bytes, the kernel's word,
; and what all types that are equal to its type begin with (%type).
%entry = type {{ ptr, i64, ptr, i64, i64, i64, i64 }}

; The beginning of a numpy array: count of references, class, elements, dimensions, sizes, strides, base, type, flags.
%array = type {{ i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 }}

; The beginning of a numpy type: count of references, class, class of scalars; then kind, letter, byte order, flags (a
; byte each) and number, which tell a number's type apart from all others.  Types that were unpickled are equal to
; numpy's own, but other objects.
%type = type {{ i64, ptr, ptr, i64 }}

@{TABLE} = global [{TABLE_WORDS} x ptr] zeroinitializer

define internal ptr @known(i64 %which) alwaysinline {{
begin:
  %at = getelementptr [{TABLE_WORDS} x ptr], ptr @{TABLE}, i64 0, i64 %which
  %found = load ptr, ptr %at
  ret ptr %found
}}

; Whether an object is an array as an entry has it.
define internal i1 @fits(ptr %object, ptr %entry) {{
begin:
  %class_at = getelementptr %array, ptr %object, i64 0, i32 1
  %class = load ptr, ptr %class_at
  %ndarray = call ptr @known(i64 0)
  %is_array = icmp eq ptr %class, %ndarray
  br i1 %is_array, label %type, label %no
type:
  %type_at = getelementptr %array, ptr %object, i64 0, i32 7
  %type_given = load ptr, ptr %type_at
  %number_at = getelementptr %type, ptr %type_given, i64 0, i32 3
  %number_given = load i64, ptr %number_at
  %number_wanted_at = getelementptr %entry, ptr %entry, i64 0, i32 6
  %number_wanted = load i64, ptr %number_wanted_at
  %same_type = icmp eq i64 %number_given, %number_wanted
  %rank_at = getelementptr %array, ptr %object, i64 0, i32 3
  %rank_given = load i32, ptr %rank_at
  %rank = sext i32 %rank_given to i64
  %rank_wanted_at = getelementptr %entry, ptr %entry, i64 0, i32 1
  %rank_wanted = load i64, ptr %rank_wanted_at
  %same_rank = icmp eq i64 %rank, %rank_wanted
  %flags_at = getelementptr %array, ptr %object, i64 0, i32 8
  %flags_given = load i32, ptr %flags_at
  %flags = sext i32 %flags_given to i64
  %flags_wanted_at = getelementptr %entry, ptr %entry, i64 0, i32 3
  %flags_wanted = load i64, ptr %flags_wanted_at
  %flags_set = and i64 %flags, %flags_wanted
  %usable = icmp eq i64 %flags_set, %flags_wanted
  %alike_1 = and i1 %same_type, %same_rank
  %alike_2 = and i1 %alike_1, %usable
  br i1 %alike_2, label %shape, label %no
shape:
  %sizes_at = getelementptr %array, ptr %object, i64 0, i32 4
  %sizes = load ptr, ptr %sizes_at
  %sizes_wanted_at = getelementptr %entry, ptr %entry, i64 0, i32 2
  %sizes_wanted = load ptr, ptr %sizes_wanted_at
  br label %next
next:
  %d = phi i64 [ 0, %shape ], [ %d_next, %size ]
  %more = icmp slt i64 %d, %rank
  br i1 %more, label %size, label %yes
size:
  %size_at = getelementptr i64, ptr %sizes, i64 %d
  %size_given = load i64, ptr %size_at
  %size_wanted_at = getelementptr i64, ptr %sizes_wanted, i64 %d
  %size_wanted = load i64, ptr %size_wanted_at
  %same_size = icmp eq i64 %size_given, %size_wanted
  %d_next = add i64 %d, 1
  br i1 %same_size, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; The addresses of an array's first byte and of that behind its last.
define internal {{ i64, i64 }} @extent(ptr %object, ptr %entry) {{
begin:
  %elements_at = getelementptr %array, ptr %object, i64 0, i32 2
  %elements = load i64, ptr %elements_at
  %bytes_at = getelementptr %entry, ptr %entry, i64 0, i32 4
  %bytes = load i64, ptr %bytes_at
  %end = add i64 %elements, %bytes
  %first = insertvalue {{ i64, i64 }} zeroinitializer, i64 %elements, 0
  %both = insertvalue {{ i64, i64 }} %first, i64 %end, 1
  ret {{ i64, i64 }} %both
}}

; Whether array %k shares no memory with any of the arrays before it.
define internal i1 @apart(ptr %objects, ptr %entries, i64 %k) {{
begin:
  %object_at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %object_at
  %entry_k = getelementptr %entry, ptr %entries, i64 %k
  %own = call {{ i64, i64 }} @extent(ptr %object, ptr %entry_k)
  %own_begin = extractvalue {{ i64, i64 }} %own, 0
  %own_end = extractvalue {{ i64, i64 }} %own, 1
  br label %next
next:
  %j = phi i64 [ 0, %begin ], [ %j_next, %one ]
  %more = icmp slt i64 %j, %k
  br i1 %more, label %one, label %yes
one:
  %other_at = getelementptr ptr, ptr %objects, i64 %j
  %other = load ptr, ptr %other_at
  %entry_j = getelementptr %entry, ptr %entries, i64 %j
  %its = call {{ i64, i64 }} @extent(ptr %other, ptr %entry_j)
  %its_begin = extractvalue {{ i64, i64 }} %its, 0
  %its_end = extractvalue {{ i64, i64 }} %its, 1
  %begins_before = icmp slt i64 %own_begin, %its_end
  %ends_behind = icmp slt i64 %its_begin, %own_end
  %overlap = and i1 %begins_before, %ends_behind
  %j_next = add i64 %j, 1
  br i1 %overlap, label %no, label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

; A new array of a type, owned; null if there is no memory for it.  Over the memory at %data if that is not null.
define internal ptr @new(ptr %type, i32 %rank, ptr %sizes, ptr %data) {{
begin:
  %own = call ptr @known(i64 2)
  call void %own(ptr %type)
  %ndarray = call ptr @known(i64 0)
  %make = call ptr @known(i64 1)
  %own_memory = icmp eq ptr %data, null
  %flags = select i1 %own_memory, i32 0, i32 {CARRAY}
  %made = call ptr %make(ptr %ndarray, ptr %type, i32 %rank, ptr %sizes, ptr null, ptr %data, i32 %flags, ptr null)
  ret ptr %made
}}

; A new array as an entry has it that starts on a cache line, owned; null if there is no memory for it.
define internal ptr @new_aligned(ptr %type, i32 %rank, ptr %sizes, i64 %bytes) {{
begin:
  %size = alloca i64
  %more = add i64 %bytes, {ALIGNMENT}
  store i64 %more, ptr %size
  %byte = call ptr @known(i64 9)
  %raw = call ptr @new(ptr %byte, i32 1, ptr %size, ptr null)
  %no_raw = icmp eq ptr %raw, null
  br i1 %no_raw, label %fail, label %view
view:
  %raw_at = getelementptr %array, ptr %raw, i64 0, i32 2
  %start = load i64, ptr %raw_at
  %beyond = add i64 %start, {ALIGNMENT - 1}
  %line = and i64 %beyond, -{ALIGNMENT}
  %data = inttoptr i64 %line to ptr
  %made = call ptr @new(ptr %type, i32 %rank, ptr %sizes, ptr %data)
  %not_made = icmp eq ptr %made, null
  %disown = call ptr @known(i64 3)
  br i1 %not_made, label %drop_raw, label %hold
drop_raw:
  call void %disown(ptr %raw)
  br label %fail
hold:
  %set_base = call ptr @known(i64 10)
  %status = call i32 %set_base(ptr %made, ptr %raw)
  %held = icmp eq i32 %status, 0
  br i1 %held, label %done, label %drop_made
drop_made:
  call void %disown(ptr %made)
  br label %fail
done:
  ret ptr %made
fail:
  ret ptr null
}}

; An owned reference to the first result: the caller's array, or a new one; null if there is no memory for it.
define internal ptr @result(ptr %given, ptr %entry) {{
begin:
  %none = call ptr @known(i64 7)
  %wanted = icmp eq ptr %given, %none
  br i1 %wanted, label %new, label %callers
new:
  %type = load ptr, ptr %entry
  %rank_at = getelementptr %entry, ptr %entry, i64 0, i32 1
  %rank_64 = load i64, ptr %rank_at
  %rank = trunc i64 %rank_64 to i32
  %sizes_at = getelementptr %entry, ptr %entry, i64 0, i32 2
  %sizes = load ptr, ptr %sizes_at
  %bytes_at = getelementptr %entry, ptr %entry, i64 0, i32 4
  %bytes = load i64, ptr %bytes_at
  %small = icmp slt i64 %bytes, {ALIGNED_FROM}
  br i1 %small, label %plain, label %aligned
plain:
  %made_plain = call ptr @new(ptr %type, i32 %rank, ptr %sizes, ptr null)
  br label %made
aligned:
  %made_aligned = call ptr @new_aligned(ptr %type, i32 %rank, ptr %sizes, i64 %bytes)
  br label %made
made:
  %result = phi ptr [ %made_plain, %plain ], [ %made_aligned, %aligned ]
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %clear, label %done
clear:
  %forget = call ptr @known(i64 6)
  call void %forget()
  ret ptr null
callers:
  %own = call ptr @known(i64 2)
  call void %own(ptr %given)
  ret ptr %given
done:
  ret ptr %result
}}

; Run the kernel of a plan on arrays that fit; its status.
define internal i32 @run(ptr %plan, ptr %objects, ptr %entries, i64 %count) {{
begin:
  %length_at = getelementptr %plan, ptr %plan, i64 0, i32 1
  %length = load i64, ptr %length_at
  %template_at = getelementptr %plan, ptr %plan, i64 0, i32 2
  %template = load ptr, ptr %template_at
  %words = alloca i64, i64 %length
  br label %copy
copy:
  %w = phi i64 [ 0, %begin ], [ %w_next, %copy_one ]
  %more_words = icmp slt i64 %w, %length
  br i1 %more_words, label %copy_one, label %fill
copy_one:
  %from = getelementptr i64, ptr %template, i64 %w
  %word = load i64, ptr %from
  %to = getelementptr i64, ptr %words, i64 %w
  store i64 %word, ptr %to
  %w_next = add i64 %w, 1
  br label %copy
fill:
  %k = phi i64 [ 0, %copy ], [ %k_next, %fill_next ]
  %more_arrays = icmp slt i64 %k, %count
  br i1 %more_arrays, label %place, label %go
place:
  %slot_at = getelementptr %entry, ptr %entries, i64 %k, i32 5
  %slot = load i64, ptr %slot_at
  %is_read = icmp sge i64 %slot, 0
  br i1 %is_read, label %fill_one, label %fill_next
fill_one:
  %object_at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %object_at
  %elements_at = getelementptr %array, ptr %object, i64 0, i32 2
  %elements = load i64, ptr %elements_at
  %target = getelementptr i64, ptr %words, i64 %slot
  store i64 %elements, ptr %target
  br label %fill_next
fill_next:
  %k_next = add i64 %k, 1
  br label %fill
go:
  %kernel = load ptr, ptr %plan
  %release = call ptr @known(i64 4)
  %thread = call ptr %release()
  %status = call i32 %kernel(ptr %words)
  %acquire = call ptr @known(i64 5)
  call void %acquire(ptr %thread)
  ret i32 %status
}}

define ptr @{FUNCTION}(ptr %self, ptr %args, i64 %given) {{
begin:
  %plan_at = getelementptr %array, ptr %self, i64 0, i32 2
  %plan = load ptr, ptr %plan_at
  %tensors_at = getelementptr %plan, ptr %plan, i64 0, i32 3
  %tensors = load i64, ptr %tensors_at
  %results_at = getelementptr %plan, ptr %plan, i64 0, i32 4
  %results = load i64, ptr %results_at
  %generation_at = getelementptr %plan, ptr %plan, i64 0, i32 5
  %generation = load i64, ptr %generation_at
  %entries_at = getelementptr %plan, ptr %plan, i64 0, i32 6
  %entries = load ptr, ptr %entries_at
  %now_at = call ptr @known(i64 8)
  %now = load i64, ptr %now_at
  %count = add i64 %tensors, %results
  %as_many = icmp eq i64 %given, %count
  %as_before = icmp eq i64 %generation, %now
  %valid = and i1 %as_many, %as_before
  br i1 %valid, label %inputs, label %refuse
inputs:
  %i = phi i64 [ 0, %begin ], [ %i_next, %input ]
  %more_inputs = icmp slt i64 %i, %tensors
  br i1 %more_inputs, label %input, label %allocate
input:
  %input_at = getelementptr ptr, ptr %args, i64 %i
  %input_given = load ptr, ptr %input_at
  %input_entry = getelementptr %entry, ptr %entries, i64 %i
  %input_fits = call i1 @fits(ptr %input_given, ptr %input_entry)
  %i_next = add i64 %i, 1
  br i1 %input_fits, label %inputs, label %refuse
allocate:
  %first_at = getelementptr ptr, ptr %args, i64 %tensors
  %first_given = load ptr, ptr %first_at
  %first_entry = getelementptr %entry, ptr %entries, i64 %tensors
  %result = call ptr @result(ptr %first_given, ptr %first_entry)
  %no_memory = icmp eq ptr %result, null
  %objects = alloca ptr, i64 %count
  br i1 %no_memory, label %refuse, label %gather
gather:
  %g = phi i64 [ 0, %allocate ], [ %g_next, %gather_one ]
  %more = icmp slt i64 %g, %count
  br i1 %more, label %gather_one, label %gathered
gather_one:
  %arg_at = getelementptr ptr, ptr %args, i64 %g
  %arg = load ptr, ptr %arg_at
  %object_to = getelementptr ptr, ptr %objects, i64 %g
  store ptr %arg, ptr %object_to
  %g_next = add i64 %g, 1
  br label %gather
gathered:
  %result_to = getelementptr ptr, ptr %objects, i64 %tensors
  store ptr %result, ptr %result_to
  br label %outputs
outputs:
  %k = phi i64 [ %tensors, %gathered ], [ %k_next, %separate ]
  %more_outputs = icmp slt i64 %k, %count
  br i1 %more_outputs, label %output, label %start
output:
  %output_at = getelementptr ptr, ptr %objects, i64 %k
  %output_given = load ptr, ptr %output_at
  %output_entry = getelementptr %entry, ptr %entries, i64 %k
  %output_fits = call i1 @fits(ptr %output_given, ptr %output_entry)
  br i1 %output_fits, label %separate, label %give_back
separate:
  %is_apart = call i1 @apart(ptr %objects, ptr %entries, i64 %k)
  %k_next = add i64 %k, 1
  br i1 %is_apart, label %outputs, label %give_back
start:
  %status = call i32 @run(ptr %plan, ptr %objects, ptr %entries, i64 %count)
  %done = icmp eq i32 %status, 0
  br i1 %done, label %finish, label %give_back
finish:
  ret ptr %result
give_back:
  %disown = call ptr @known(i64 3)
  call void %disown(ptr %result)
  br label %refuse
refuse:
  %none = call ptr @known(i64 7)
  %own = call ptr @known(i64 2)
  call void %own(ptr %none)
  ret ptr %none
}}
"""
