"""Arrays over tensors of other libraries, in LLVM IR: the code between such a tensor and a plan's launcher.

There are two functions of CPython's (METH_FASTCALL), of one argument each.  Both return an array over the tensor's
memory, or None for anything unusual (memory elsewhere, an invalid type or size, an error of the owner's).  After None
nothing has happened, and Python checks the tensor again and reports the reason.

* `opgen_view_object(self, args, count)`: a tensor whose class has DLPack's table of C functions
  (`__dlpack_c_exchange_api__`).  `self` is a numpy array of one word, the table's function that describes a tensor.
  The array refers to the tensor, and can be written.
* `opgen_view_capsule(self, args, count)`: a DLPack capsule, which is taken over: its memory is given back with the
  array.  The array can be written if the capsule says so.

CPython's and numpy's symbols are reached through `opgen_view_table`, which the loader fills:

    [0] numpy.ndarray  [1] PyArray_NewFromDescr  [2] Py_IncRef  [3] Py_DecRef  [4] PyErr_Clear  [5] None
    [6] PyArray_SetBaseObject  [7] PyCapsule_IsValid  [8] PyCapsule_GetPointer  [9] PyCapsule_SetName
    [10] PyCapsule_New  [11] how many types there are  [12] the types: DLPack's word, numpy's type, bytes
    [13] PyErr_Fetch  [14] PyErr_Restore
"""

from __future__ import annotations

from opgen.runtime.memory.dlpack import HOST_DEVICES, PENDING, PENDING_VERSIONED, READ_ONLY, TAKEN, TAKEN_VERSIONED

OBJECT, CAPSULE, TABLE = "opgen_view_object", "opgen_view_capsule", "opgen_view_table"
TABLE_WORDS = 15
TYPE_WORDS = 3
MAX_RANK = 16
"""Tensors with more dimensions take the slow path."""
_WRITEABLE = 0x400
_LIMIT = 1 << 46
"""Larger sizes and strides take the slow path, so that no product of two with an element's size overflows."""


def _text(name: str, text: bytes) -> str:
    return f'@{name} = private constant [{len(text) + 1} x i8] c"{text.decode()}\\00"'


def _give_back(function: str, name: str, deleter: int) -> str:
    """Return the destructor of a capsule of ours over memory that is lent in one of the two forms."""
    return f"""\
; Called with a capsule of ours that nothing refers to any more; an error that is pending stays so.
define internal void @{function}(ptr %capsule) {{
begin:
  %errors = alloca [3 x ptr]
  %error_1 = getelementptr ptr, ptr %errors, i64 1
  %error_2 = getelementptr ptr, ptr %errors, i64 2
  %get = call ptr @known(i64 8)
  %managed = call ptr %get(ptr %capsule, ptr @{name})
  %deleter_at = getelementptr i8, ptr %managed, i64 {deleter}
  %deleter = load ptr, ptr %deleter_at
  %nothing = icmp eq ptr %deleter, null
  br i1 %nothing, label %done, label %delete
delete:
  %fetch = call ptr @known(i64 13)
  call void %fetch(ptr %errors, ptr %error_1, ptr %error_2)
  call void %deleter(ptr %managed)
  %first = load ptr, ptr %errors
  %second = load ptr, ptr %error_1
  %third = load ptr, ptr %error_2
  %restore = call ptr @known(i64 14)
  call void %restore(ptr %first, ptr %second, ptr %third)
  br label %done
done:
  ret void
}}
"""


def _hosts() -> str:
    """Return code that tests if %device is this machine's memory; the last %host_N is the result."""
    lines, before = [], "begin"
    for n in HOST_DEVICES:
        lines += [f"  %is_{n} = icmp eq i32 %device, {n}", f"  %host_{n} = or i1 %host_{before}, %is_{n}"]
        before = str(n)
    return "\n".join(lines)


IR = f"""\
; DLTensor: data, device, its number, dimensions, type (code, bits, lanes), sizes, strides, offset.
%tensor = type {{ ptr, i32, i32, i32, i32, ptr, ptr, i64 }}
; DLManagedTensor and DLManagedTensorVersioned.
%managed = type {{ %tensor, ptr, ptr }}
%versioned = type {{ i32, i32, ptr, ptr, i64, %tensor }}
%type = type {{ i64, ptr, i64 }}

@{TABLE} = global [{TABLE_WORDS} x ptr] zeroinitializer
{_text("pending", PENDING)}
{_text("taken_", TAKEN)}
{_text("pending_versioned", PENDING_VERSIONED)}
{_text("taken_versioned", TAKEN_VERSIONED)}
{_text("lent", b"opgen_lent")}
{_text("lent_versioned", b"opgen_lent_versioned")}

define internal ptr @known(i64 %which) alwaysinline {{
begin:
  %at = getelementptr [{TABLE_WORDS} x ptr], ptr @{TABLE}, i64 0, i64 %which
  %found = load ptr, ptr %at
  ret ptr %found
}}

define internal ptr @none() alwaysinline {{
begin:
  %none = call ptr @known(i64 5)
  %own = call ptr @known(i64 2)
  call void %own(ptr %none)
  ret ptr %none
}}

; Whether a number is from 0 to LIMIT.
define internal i1 @is_small(i64 %n) alwaysinline {{
begin:
  %small = icmp ule i64 %n, {_LIMIT}
  ret i1 %small
}}

; What numpy calls a type of DLPack's; null if that is none of ours.
define internal ptr @type_of(i32 %word) {{
begin:
  %wanted = zext i32 %word to i64
  %count_word = call ptr @known(i64 11)
  %count = ptrtoint ptr %count_word to i64
  %types = call ptr @known(i64 12)
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k_next, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %unknown
one:
  %at = getelementptr %type, ptr %types, i64 %k
  %code = load i64, ptr %at
  %k_next = add i64 %k, 1
  %is_it = icmp eq i64 %code, %wanted
  br i1 %is_it, label %found, label %next
found:
  ret ptr %at
unknown:
  ret ptr null
}}

; A new array over a tensor, owned; null (and no error is set) if it is not as usual.
define internal ptr @array(ptr %t, i32 %flags) {{
begin:
  %steps = alloca [{MAX_RANK} x i64]
  %data = load ptr, ptr %t
  %no_data = icmp eq ptr %data, null
  %device_at = getelementptr %tensor, ptr %t, i64 0, i32 1
  %device = load i32, ptr %device_at
  %host_begin = icmp eq i1 true, false
{_hosts()}
  %rank_at = getelementptr %tensor, ptr %t, i64 0, i32 3
  %rank_32 = load i32, ptr %rank_at
  %rank = zext i32 %rank_32 to i64
  %few = icmp ule i64 %rank, {MAX_RANK}
  %word_at = getelementptr %tensor, ptr %t, i64 0, i32 4
  %word = load i32, ptr %word_at
  %type = call ptr @type_of(i32 %word)
  %no_type = icmp eq ptr %type, null
  %sizes_at = getelementptr %tensor, ptr %t, i64 0, i32 5
  %sizes = load ptr, ptr %sizes_at
  %no_sizes = icmp eq ptr %sizes, null
  %scalar = icmp eq i64 %rank, 0
  %has_sizes = xor i1 %no_sizes, true
  %shaped = or i1 %has_sizes, %scalar
  %bad = or i1 %no_data, %no_type
  %good_1 = xor i1 %bad, true
  %good_2 = and i1 %good_1, %host_{HOST_DEVICES[-1]}
  %good_3 = and i1 %good_2, %few
  %good = and i1 %good_3, %shaped
  br i1 %good, label %layout, label %no
layout:
  %strides_at = getelementptr %tensor, ptr %t, i64 0, i32 6
  %strides = load ptr, ptr %strides_at
  %dense = icmp eq ptr %strides, null
  %bytes_at = getelementptr %type, ptr %type, i64 0, i32 2
  %bytes = load i64, ptr %bytes_at
  br label %axes
axes:
  %left = phi i64 [ %rank, %layout ], [ %axis, %axis_done ]
  %step = phi i64 [ 1, %layout ], [ %step_next, %axis_done ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %one_axis, label %make
one_axis:
  %axis = sub i64 %left, 1
  %size_at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size_at
  %size_small = call i1 @is_small(i64 %size)
  %product = call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 %step, i64 %size)
  %step_next = extractvalue {{ i64, i1 }} %product, 0
  %product_small = call i1 @is_small(i64 %step_next)
  %overflow = extractvalue {{ i64, i1 }} %product, 1
  %no_overflow = xor i1 %overflow, true
  %fits_1 = and i1 %size_small, %product_small
  %fits = and i1 %fits_1, %no_overflow
  br i1 %fits, label %stride, label %no
stride:
  br i1 %dense, label %axis_done, label %given
given:
  %given_at = getelementptr i64, ptr %strides, i64 %axis
  %given_stride = load i64, ptr %given_at
  %shifted = add i64 %given_stride, {_LIMIT // 2}
  %stride_small = call i1 @is_small(i64 %shifted)
  br i1 %stride_small, label %axis_given, label %no
axis_given:
  br label %axis_done
axis_done:
  %elements = phi i64 [ %step, %stride ], [ %given_stride, %axis_given ]
  %apart = mul i64 %elements, %bytes
  %apart_at = getelementptr [{MAX_RANK} x i64], ptr %steps, i64 0, i64 %axis
  store i64 %apart, ptr %apart_at
  br label %axes
make:
  %offset_at = getelementptr %tensor, ptr %t, i64 0, i32 7
  %offset = load i64, ptr %offset_at
  %start = getelementptr i8, ptr %data, i64 %offset
  %descr_at = getelementptr %type, ptr %type, i64 0, i32 1
  %descr = load ptr, ptr %descr_at
  %own = call ptr @known(i64 2)
  call void %own(ptr %descr)
  %ndarray = call ptr @known(i64 0)
  %new = call ptr @known(i64 1)
  %made = call ptr %new(
    ptr %ndarray, ptr %descr, i32 %rank_32, ptr %sizes, ptr %steps, ptr %start, i32 %flags, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %clear, label %done
clear:
  %forget = call ptr @known(i64 4)
  call void %forget()
  br label %no
done:
  ret ptr %made
no:
  ret ptr null
}}

declare {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64, i64)

; The array, or None, with an owner (whose reference is given away) as what it refers to.
define internal ptr @based(ptr %array, ptr %owner) {{
begin:
  %disown = call ptr @known(i64 3)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %drop, label %hold
hold:
  %set_base = call ptr @known(i64 6)
  %status = call i32 %set_base(ptr %array, ptr %owner)
  %held = icmp eq i32 %status, 0
  br i1 %held, label %done, label %clear
clear:
  %forget = call ptr @known(i64 4)
  call void %forget()
  call void %disown(ptr %array)
  br label %no
drop:
  call void %disown(ptr %owner)
  br label %no
done:
  ret ptr %array
no:
  %none = call ptr @none()
  ret ptr %none
}}

define ptr @{OBJECT}(ptr %self, ptr %args, i64 %count) {{
begin:
  %t = alloca %tensor
  store %tensor zeroinitializer, ptr %t
  %words_at = getelementptr {{ i64, ptr, ptr }}, ptr %self, i64 0, i32 2
  %words = load ptr, ptr %words_at
  %describe = load ptr, ptr %words
  %one = icmp eq i64 %count, 1
  br i1 %one, label %look, label %no
look:
  %object = load ptr, ptr %args
  %status = call i32 %describe(ptr %object, ptr %t)
  %known = icmp eq i32 %status, 0
  br i1 %known, label %view, label %clear
view:
  %array = call ptr @array(ptr %t, i32 {_WRITEABLE})
  %own = call ptr @known(i64 2)
  call void %own(ptr %object)
  %found = call ptr @based(ptr %array, ptr %object)
  ret ptr %found
clear:
  %forget = call ptr @known(i64 4)
  call void %forget()
  br label %no
no:
  %none = call ptr @none()
  ret ptr %none
}}

{_give_back("give_back", "lent", 56)}
{_give_back("give_back_versioned", "lent_versioned", 16)}

; An array over what a capsule of one of the forms lends, or None.
define internal ptr @taken(ptr %capsule, ptr %managed, ptr %t, i32 %flags, ptr %name, ptr %mine, ptr %end) {{
begin:
  %array = call ptr @array(ptr %t, i32 %flags)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %no, label %own
own:
  %make = call ptr @known(i64 10)
  %owner = call ptr %make(ptr %managed, ptr %mine, ptr %end)
  %no_owner = icmp eq ptr %owner, null
  br i1 %no_owner, label %clear, label %take
clear:
  %forget = call ptr @known(i64 4)
  call void %forget()
  %disown = call ptr @known(i64 3)
  call void %disown(ptr %array)
  br label %no
take:
  %rename = call ptr @known(i64 9)
  %renamed = call i32 %rename(ptr %capsule, ptr %name)
  %found = call ptr @based(ptr %array, ptr %owner)
  ret ptr %found
no:
  %none = call ptr @none()
  ret ptr %none
}}

define ptr @{CAPSULE}(ptr %self, ptr %args, i64 %count) {{
begin:
  %one = icmp eq i64 %count, 1
  br i1 %one, label %look, label %no
look:
  %capsule = load ptr, ptr %args
  %is_valid = call ptr @known(i64 7)
  %get = call ptr @known(i64 8)
  %new_form = call i32 %is_valid(ptr %capsule, ptr @pending_versioned)
  %is_new_form = icmp ne i32 %new_form, 0
  br i1 %is_new_form, label %versioned, label %older
versioned:
  %managed_1 = call ptr %get(ptr %capsule, ptr @pending_versioned)
  %major = load i32, ptr %managed_1
  %known_version = icmp eq i32 %major, 1
  %what_at = getelementptr %versioned, ptr %managed_1, i64 0, i32 4
  %what = load i64, ptr %what_at
  %protected = and i64 %what, {READ_ONLY}
  %writeable = icmp eq i64 %protected, 0
  %flags = select i1 %writeable, i32 {_WRITEABLE}, i32 0
  %t_1 = getelementptr %versioned, ptr %managed_1, i64 0, i32 5
  br i1 %known_version, label %take_versioned, label %no
take_versioned:
  %found_1 = call ptr @taken(
    ptr %capsule, ptr %managed_1, ptr %t_1, i32 %flags,
    ptr @taken_versioned, ptr @lent_versioned, ptr @give_back_versioned)
  ret ptr %found_1
older:
  %old_form = call i32 %is_valid(ptr %capsule, ptr @pending)
  %is_old_form = icmp ne i32 %old_form, 0
  br i1 %is_old_form, label %take, label %no
take:
  %managed_0 = call ptr %get(ptr %capsule, ptr @pending)
  %found_0 = call ptr @taken(
    ptr %capsule, ptr %managed_0, ptr %managed_0, i32 0, ptr @taken_, ptr @lent, ptr @give_back)
  ret ptr %found_0
no:
  %none = call ptr @none()
  ret ptr %none
}}
"""
