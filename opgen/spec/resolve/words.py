"""Reserved words of the generated languages, each list with its source; a name in a spec must avoid all of them.

A name occurs in the code of every language that opgen writes, so a word reserved in one is refused for all.
"""

from __future__ import annotations

import keyword
import re
import sys
from typing import get_args

from opgen.dtypes import ALIASES, DTYPES
from opgen.spec.model.expressions import ScalarFunction


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SPEC = frozenset(get_args(ScalarFunction)) | _words(
    """
import function fragment let require return where if then else and or not in true false sum prod max min argmax argmin
ascending descending present ceildiv pow atan2 rem bit_and bit_or bit_xor bit_cast fma random shift_left shift_right
layout enum alias compatibility deprecated shape_only like inf nan
"""
)
"""Words of the spec language itself (`grammar.lark`, and its functions)."""

TYPES = frozenset({*DTYPES, *ALIASES, "int"})
"""Scalar types (`dtypes.py`) and kinds of attributes."""

PYTHON = frozenset({*keyword.kwlist, *keyword.softkwlist} - {"type", "_"})
"""Keywords of Python; `type` is left out, because it is one only at the start of a statement."""

GENERATED = frozenset({"self", "cls", "out", "name", "np", "numpy", "opgen", "raw_ops", "typing", "annotations"})
"""Names that generated code uses beside those of a spec."""

MODULE = _words(
    """
check out name Array Call Checks Elements InPlace Integers Library Literal NoReturn Numbers Prepared
PreparedSeveral Sequence Signature Signatures Takes TensorLike annotations overload stretched logical padded rows
prepare raw_ops plain_vector final bool dict float int len max min object pow staticmethod str tuple __all__
__debug__ __doc__ __file__ __name__ True False None
"""
)
"""Names that a generated Python module imports, defines or calls; its functions and arguments cannot have them."""

C = _words(
    """
alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern false float
for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch
thread_local true typedef typeof typeof_unqual union unsigned void volatile while
"""
)
"""Keywords of C23 (ISO/IEC 9899:2024, 6.4.1); `asm` is a common extension."""

CPP = _words(
    """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
char char8_t char16_t char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit contract_assert continue decltype default delete do double dynamic_cast else enum explicit export extern
false final float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
or_eq override private protected public reflexpr register reinterpret_cast requires restrict return short signed
sizeof static static_assert static_cast struct switch synchronized template this thread_local throw true try typedef
typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq std threadIdx blockIdx
blockDim gridDim warpSize
"""
)
"""Keywords and alternative tokens of C++23 (ISO/IEC 14882:2024, 5.11), its technical specifications, and CUDA C++."""

JAVA = _words(
    """
abstract assert boolean break byte case catch char class const continue default do double else enum extends final
finally float for goto if implements import instanceof int interface long native new package private protected public
return short static strictfp super switch synchronized this throw throws transient try void volatile while true false
null
"""
)
"""Keywords and literals of Java (JLS 21, 3.9)."""

C_MACROS = _words(
    """
I complex imaginary errno assert offsetof setjmp sigsetjmp alloca noreturn va_arg va_copy va_end va_start
kill_dependency sigmask isnan isinf isfinite isnormal signbit fpclassify isgreater isgreaterequal isless islessequal
islessgreater isunordered stdin stdout stderr linux unix i386 math_errhandling NULL EOF WEOF BUFSIZ NAN INFINITY
HUGE_VAL HUGE_VALF HUGE_VALL CHAR_BIT RAND_MAX L_tmpnam L_ctermid P_tmpdir FD_SETSIZE NFDBITS NSIG NGREG NZERO
MINSIGSTKSZ DECIMAL_DIG BIG_ENDIAN LITTLE_ENDIAN PDP_ENDIAN BYTE_ORDER ONCE_FLAG_INIT TSS_DTOR_ITERATIONS TIME_UTC
TIMER_ABSTIME MAX_CANON MAX_INPUT PIPE_BUF WNOHANG WUNTRACED WSTOPPED WEXITED WCONTINUED WNOWAIT CMPLX CMPLXF CMPLXL
TRUE FALSE major minor makedev pthread_cleanup_pop pthread_cleanup_push sa_handler sa_sigaction sched_priority
sigev_notify_attributes sigev_notify_function si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int si_lower
si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper si_utime si_value toascii
htobe16 htobe32 htobe64 htole16 htole32 htole64 be16toh be32toh be64toh le16toh le32toh le64toh size_t ptrdiff_t
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t E2BIG EACCES EADDRINUSE
EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY
ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT
EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM
EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG
ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO
ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT
ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ
ENXIO EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG
EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT
ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL
CSIGNAL LONG_BIT WORD_BIT MAXFLOAT L_cuserid DL_CALL_FCT TEMP_FAILURE_RETRY
st_atime st_ctime st_mtime d_fileno h_addr h_errno s6_addr s6_addr16 s6_addr32 basename iscanonical issignaling iszero
timeradd timerclear timercmp timerisset timersub
assert_perror issubnormal iseqsig strdupa strndupa pthread_cleanup_pop_restore_np pthread_cleanup_push_defer_np
"""
)
"""Macros and common types of the headers of C23 (clause 7), POSIX and glibc; macros of GCC's GNU mode."""

C_MACRO_FAMILIES = re.compile(
    r"""[A-Z][A-Z0-9_]*_(MAX|MIN|WIDTH)      # limits.h, stdint.h, float.h, and what a library adds
    | U?INT(\d+|MAX)_C                       # stdint.h
    | (PRI|SCN)[bBdiouxX](LEAST|FAST)?(\d+|MAX|PTR)            # inttypes.h
    | (FLT|DBL|LDBL|DEC|FLT\d+X?|DEC\d+)_[A-Z0-9_]+          # float.h
    | (ATOMIC|EXIT|FE|FP|LC|M|MATH|SEEK|TIME)_[A-Z0-9][A-Za-z0-9_]*   # reserved by C23, 7.33
    | SIG[A-Z_][A-Z0-9_]*                    # signal.h
    | (AIO|BUS|CLD|CLOCK|CLONE|CPU|FD|FPE|F|ILL|L|POLL|POSIX|PTHREAD)_[A-Z0-9_]+   # POSIX.1-2017
    | (RTLD|R|SA|SCHED|SEGV|SI|SS|TRAP|W|X|XOPEN)_[A-Z0-9_]+
    | (STDIN|STDOUT|STDERR)_FILENO | W(EXIT|TERM|STOP|IF)[A-Z]+ | CLOCKS_PER_SEC
    | (ADJ|CLOSE_RANGE|DLFO|LM_ID|MOD|NL|REG|RENAME|STA)_[A-Z0-9_]+ | (CMPLX|HUGE_VAL_|SNAN)F?\d*[XL]?   # glibc
    | (CHARCLASS|FILENAME|HOST|LOGIN|TTY)_NAME_MAX""",
    re.VERBOSE,
)
"""Patterns of macros of these headers; the standards reserve the patterns for future macros."""

C_API = _words(
    """
abi_version require_abi check_abi last_error set_num_threads set_num_threads_with_message get_num_threads cpu_level
status dtype device tensor shape k
"""
)
"""Functions and types of a generated C library besides its ops, without the library's prefix."""

C_PREFIXED = _words(
    """
F_OK R_OK W_OK X_OK MAP_FAILED SEM_FAILED NETDB_INTERNAL
dbm_close dbm_open fts_close fts_open mq_close mq_open sem_close sem_open shm_open
"""
)
"""Macros and functions of C's headers that end like a library's own; their beginnings cannot be library prefixes."""

CPP_API = _words(
    """
Const Placeholder error gtl internal ops half bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 string operator
Status StatusOr StatusCode
StringPiece OkStatus TensorShape PartialTensorShape DataType DataTypeToEnum DataTypeString DataTypeSize Tensor
TensorMap Node Output OutputHash Operation Input Scope ClientSession DT_INVALID DT_FLOAT DT_DOUBLE DT_INT8 DT_INT16
DT_INT32 DT_INT64 DT_UINT8 DT_UINT16 DT_UINT32 DT_UINT64 DT_BOOL DT_BFLOAT16 DT_HALF
int4 uint4 int2 uint2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn
DT_INT4 DT_UINT4 DT_INT2 DT_UINT2 DT_FLOAT8_E4M3FN DT_FLOAT8_E4M3FNUZ DT_FLOAT8_E5M2 DT_FLOAT8_E5M2FNUZ
DT_FLOAT8_E8M0FNU DT_FLOAT4_E2M1FN
"""
)
"""Names that the C++ API itself declares in the namespace of the ops."""

CPP_MEMBERS = _words("Attrs node operation")
"""Members of every op's class in C++; no class can have the name of one."""

JAVA_LANG = _words(
    """
Boolean Byte Character Class Double Error Exception Float Integer Iterable Long Math Module Number Object Override
Package Process Record Runnable Runtime Short String System Thread Throwable Void
"""
)
"""Classes of java.lang that code uses without an import; an op's class must not hide one."""

PYTHON_MODULES = frozenset({*sys.stdlib_module_names, "numpy", "opgen", "ml_dtypes"})
"""Modules that a generated one must not hide; a program in its folder would find the generated one first."""
