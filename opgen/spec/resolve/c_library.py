"""Names that a C library declares for every program; no C++ namespace and no header may use one.

Sources: functions, types and variables of the headers of C11 (clause 7), and of the POSIX.1-2017 and glibc headers
that a kernel library includes (unistd.h, pthread.h, dlfcn.h, sched.h).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


C_LIBRARY = _words(
    """
FILE a64l abort abs access acct acos acosf acosh acoshf acoshl acosl alarm aligned_alloc alloca arc4random
arc4random_buf arc4random_uniform asctime asctime_r asin asinf asinh asinhf asinhl asinl at_quick_exit atan atan2
atan2f atan2l atanf atanh atanhf atanhl atanl atexit atof atoi atol atoll atomic_bool atomic_char atomic_char16_t
atomic_char32_t atomic_flag atomic_flag_clear atomic_flag_clear_explicit atomic_flag_test_and_set
atomic_flag_test_and_set_explicit atomic_int atomic_int_fast16_t atomic_int_fast32_t atomic_int_fast64_t
atomic_int_fast8_t atomic_int_least16_t atomic_int_least32_t atomic_int_least64_t atomic_int_least8_t atomic_intmax_t
atomic_intptr_t atomic_llong atomic_long atomic_ptrdiff_t atomic_schar atomic_short atomic_signal_fence atomic_size_t
atomic_thread_fence atomic_uchar atomic_uint atomic_uint_fast16_t atomic_uint_fast32_t atomic_uint_fast64_t
atomic_uint_fast8_t atomic_uint_least16_t atomic_uint_least32_t atomic_uint_least64_t atomic_uint_least8_t
atomic_uintmax_t atomic_uintptr_t atomic_ullong atomic_ulong atomic_ushort atomic_wchar_t atomic_wide_counter bcmp
bcopy blkcnt64_t blkcnt_t blksize_t brk bsearch btowc bzero c16rtomb c32rtomb cabs cabsf cabsl cacos cacosf cacosh
cacoshf cacoshl cacosl caddr_t call_once calloc carg cargf cargl casin casinf casinh casinhf casinhl casinl catan
catanf catanh catanhf catanhl catanl cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl ccosl ceil ceilf ceill cexp cexpf
cexpl char16_t char32_t chdir chown chroot cimag cimagf cimagl clearenv clearerr clearerr_unlocked clock
clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clock_t clockid_t clog clogf clogl close
closefrom cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_t cnd_timedwait cnd_wait confstr conj conjf conjl copysign
copysignf copysignl cos cosf cosh coshf coshl cosl cpow cpowf cpowl cproj cprojf cprojl cpu_mask cpu_set_t creal
crealf creall crypt csin csinf csinh csinhf csinhl csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl
ctermid ctime ctime_r daddr_t daemon daylight dev_t difftime div div_t dlclose dlerror dlopen dlsym double_t dprintf
drand48 drand48_r drem dremf dreml dup dup2 duplocale dysize ecvt ecvt_r endusershell environ erand48 erand48_r erf
erfc erfcf erfcl erff erfl execl execle execlp execv execve execvp exit exp exp2 exp2f exp2l expf expl explicit_bzero
expm1 expm1f expm1l fabs fabsf fabsl faccessat fchdir fchown fchownat fclose fcvt fcvt_r fd_mask fd_set fdatasync fdim
fdimf fdiml fdopen feclearexcept fegetenv fegetexceptflag fegetround feholdexcept fenv_t feof feof_unlocked
feraiseexcept ferror ferror_unlocked fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fexcept_t fexecve
fflush fflush_unlocked ffs ffsl ffsll fgetc fgetc_unlocked fgetpos fgets fgetwc fgetws fileno fileno_unlocked finite
finitef finitel float_t flockfile floor floorf floorl fma fmaf fmal fmax fmaxf fmaxl fmemopen fmin fminf fminl fmod
fmodf fmodl fopen fork fpathconf fpos64_t fpos_t fpregset_t fprintf fputc fputc_unlocked fputs fputwc fputws fread
fread_unlocked free freelocale freopen frexp frexpf frexpl fsblkcnt64_t fsblkcnt_t fscanf fseek fseeko fsetpos
fsfilcnt64_t fsfilcnt_t fsid_t fsword_t fsync ftell ftello ftruncate ftrylockfile funlockfile fwide fwprintf fwrite
fwrite_unlocked fwscanf gamma gammaf gammal gcvt getc getc_unlocked getchar getchar_unlocked getcwd getdelim
getdomainname getdtablesize getegid getentropy getenv geteuid getgid getgroups gethostid gethostname getline
getloadavg getlogin getlogin_r getopt getpagesize getpass getpgid getpgrp getpid getppid getsid getsubopt getuid
getusershell getw getwc getwchar getwd gid_t gmtime gmtime_r gregset_t gsignal gwchar_t hypot hypotf hypotl id_t ilogb
ilogbf ilogbl imaxabs imaxdiv imaxdiv_t index initstate initstate_r ino64_t ino_t int16_t int32_t int64_t int8_t
int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t intmax_t
intptr_t isalnum isalnum_l isalpha isalpha_l isascii isatty isblank isblank_l iscntrl iscntrl_l isdigit isdigit_l
isgraph isgraph_l isinf isinff isinfl islower islower_l isnan isnanf isnanl isprint isprint_l ispunct ispunct_l
isspace isspace_l isupper isupper_l iswalnum iswalnum_l iswalpha iswalpha_l iswblank iswblank_l iswcntrl iswcntrl_l
iswctype iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower iswlower_l iswprint iswprint_l iswpunct
iswpunct_l iswspace iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l isxdigit isxdigit_l j0 j0f j0l j1 j1f j1l
jmp_buf jn jnf jnl jrand48 jrand48_r key_t kill killpg l64a labs lchown lcong48 lcong48_r ldexp ldexpf ldexpl ldiv
ldiv_t lgamma lgamma_r lgammaf lgammaf_r lgammal lgammal_r link linkat llabs lldiv llrint llrintf llrintl llround
llroundf llroundl locale_t localtime localtime_r lockf loff_t log log10 log10f log10l log1p log1pf log1pl
log2 log2f log2l logb logbf logbl logf logl longjmp lrand48 lrand48_r lrint lrintf lrintl lround lroundf lroundl lseek
malloc max_align_t mblen mbrlen mbrtoc16 mbrtoc32 mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstate_t mbstowcs mbtowc
mcontext_t memccpy memchr memcmp memcpy memmove memory_order memset mkdtemp mkstemp mkstemps mktemp mktime mode_t modf
modff modfl mrand48 mrand48_r mtx_destroy mtx_init mtx_lock mtx_t mtx_timedlock mtx_trylock mtx_unlock nan nanf nanl
nanosleep nearbyint nearbyintf nearbyintl newlocale nextafter nextafterf nextafterl nexttoward nexttowardf nexttowardl
nice nlink_t nrand48 nrand48_r off64_t off_t on_exit once_flag open_memstream open_wmemstream optarg opterr optind
optopt pathconf pause pclose perror pid_t pipe popen posix_memalign pow powf powl pread printf profil pselect psiginfo
psignal pthread_atfork pthread_attr_destroy pthread_attr_getdetachstate pthread_attr_getguardsize
pthread_attr_getinheritsched pthread_attr_getschedparam pthread_attr_getschedpolicy pthread_attr_getscope
pthread_attr_getstack pthread_attr_getstackaddr pthread_attr_getstacksize pthread_attr_init
pthread_attr_setdetachstate pthread_attr_setguardsize pthread_attr_setinheritsched pthread_attr_setschedparam
pthread_attr_setschedpolicy pthread_attr_setscope pthread_attr_setstack pthread_attr_setstackaddr
pthread_attr_setstacksize pthread_attr_t pthread_barrier_destroy pthread_barrier_init pthread_barrier_t
pthread_barrier_wait pthread_barrierattr_destroy pthread_barrierattr_getpshared pthread_barrierattr_init
pthread_barrierattr_setpshared pthread_barrierattr_t pthread_cancel pthread_cond_broadcast pthread_cond_destroy
pthread_cond_init pthread_cond_signal pthread_cond_t pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy
pthread_condattr_getclock pthread_condattr_getpshared pthread_condattr_init pthread_condattr_setclock
pthread_condattr_setpshared pthread_condattr_t pthread_create pthread_detach pthread_equal pthread_exit
pthread_getcpuclockid pthread_getschedparam pthread_getspecific pthread_join pthread_key_create pthread_key_delete
pthread_key_t pthread_kill pthread_list_t pthread_mutex_consistent pthread_mutex_destroy pthread_mutex_getprioceiling
pthread_mutex_init pthread_mutex_lock pthread_mutex_setprioceiling pthread_mutex_t pthread_mutex_timedlock
pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_destroy pthread_mutexattr_getprioceiling
pthread_mutexattr_getprotocol pthread_mutexattr_getpshared pthread_mutexattr_getrobust pthread_mutexattr_gettype
pthread_mutexattr_init pthread_mutexattr_setprioceiling pthread_mutexattr_setprotocol pthread_mutexattr_setpshared
pthread_mutexattr_setrobust pthread_mutexattr_settype pthread_mutexattr_t pthread_once pthread_once_t
pthread_rwlock_destroy pthread_rwlock_init pthread_rwlock_rdlock pthread_rwlock_t pthread_rwlock_timedrdlock
pthread_rwlock_timedwrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock
pthread_rwlock_wrlock pthread_rwlockattr_destroy pthread_rwlockattr_getkind_np pthread_rwlockattr_getpshared
pthread_rwlockattr_init pthread_rwlockattr_setkind_np pthread_rwlockattr_setpshared pthread_rwlockattr_t pthread_self
pthread_setcancelstate pthread_setcanceltype pthread_setschedparam pthread_setschedprio pthread_setspecific
pthread_sigmask pthread_slist_t pthread_spin_destroy pthread_spin_init pthread_spin_lock pthread_spin_trylock
pthread_spin_unlock pthread_spinlock_t pthread_t pthread_testcancel pthread_unwind_buf_t ptrdiff_t putc putc_unlocked
putchar putchar_unlocked putenv puts putw putwc putwchar pwrite qecvt qecvt_r qfcvt qfcvt_r qgcvt qsort quad_t
quick_exit raise rand rand_r random random_r read readlink readlinkat realloc reallocarray realpath register_t
remainder remainderf remainderl remove remquo remquof remquol rename renameat revoke rewind rindex rint rintf rintl
rlim64_t rlim_t rmdir round roundf roundl rpmatch sbrk scalb scalbf scalbl scalbln scalblnf scalblnl scalbn scalbnf
scalbnl scanf sched_get_priority_max sched_get_priority_min sched_getparam sched_getscheduler sched_rr_get_interval
sched_setparam sched_setscheduler sched_yield seed48 seed48_r select setbuf setbuffer setdomainname setegid setenv
seteuid setgid sethostid sethostname setjmp setlinebuf setlocale setlogin setpgid setpgrp setregid setreuid setsid
setstate setstate_r setuid setusershell setvbuf sig_atomic_t sig_t sigaction sigaddset sigaltstack sigblock sigdelset
sigemptyset sigevent_t sigfillset siggetmask siginfo_t siginterrupt sigismember sigjmp_buf siglongjmp signal signgam
significand significandf significandl sigpending sigprocmask sigqueue sigreturn sigset_t sigsetmask sigstack
sigsuspend sigtimedwait sigval_t sigwait sigwaitinfo sin sinf sinh sinhf sinhl sinl size_t sleep snprintf socklen_t
sprintf sqrt sqrtf sqrtl srand srand48 srand48_r srandom srandom_r sscanf ssignal ssize_t stack_t stderr stdin stdout
stpcpy stpncpy strcasecmp strcasecmp_l strcat strchr strcmp strcoll strcoll_l strcpy strcspn strdup strerror
strerror_l strerror_r strftime strftime_l strlen strncasecmp strncasecmp_l strncat strncmp strncpy strndup strnlen
strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtoimax strtok strtok_r strtol strtold strtoll strtoq
strtoul strtoull strtoumax strtouq strxfrm strxfrm_l suseconds64_t suseconds_t swprintf swscanf symlink symlinkat sync
syscall syscall_slong_t syscall_ulong_t sysconf system tan tanf tanh tanhf tanhl tanl tcgetpgrp tcsetpgrp tempnam
tgamma tgammaf tgammal thrd_create thrd_current thrd_detach thrd_equal thrd_exit thrd_join thrd_sleep thrd_start_t
thrd_t thrd_yield time time_t timegm timelocal timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timer_t timespec_get timezone tmpfile tmpnam tmpnam_r toascii tolower tolower_l toupper toupper_l towctrans
towctrans_l towlower towlower_l towupper towupper_l trunc truncate truncf truncl tss_create tss_delete tss_dtor_t
tss_get tss_set tss_t ttyname ttyname_r ttyslot tzname tzset u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t
u_long u_quad_t u_short ualarm ucontext_t uid_t uint uint16_t uint32_t uint64_t uint8_t uint_fast16_t uint_fast32_t
uint_fast64_t uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t ulong ungetc
ungetwc unlink unlinkat unsetenv useconds_t uselocale ushort usleep va_list valloc vdprintf vfork vfprintf vfscanf
vfwprintf vfwscanf vhangup vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwprintf vwscanf wchar_t
wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcscmp wcscoll wcscoll_l wcscpy wcscspn wcsdup wcsftime
wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr
wcstod wcstof wcstoimax wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull wcstoumax wcsxfrm wcsxfrm_l wctob
wctomb wctrans wctrans_l wctrans_t wctype wctype_l wctype_t wint_t wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf
write wscanf y0 y0f y0l y1 y1f y1l yn ynf ynl
"""
)

HEADERS = _words(
    """
aio alloca arpa assert byteswap complex cpio cpuid ctype dirent dlfcn elf endian err errno error execinfo fcntl
features fenv float fmtmsg fnmatch ftw getopt glob grp immintrin inttypes iso646 langinfo libgen limits link
locale malloc math memory mntent monetary mqueue ndbm net netdb netinet nl_types obstack omp paths poll printf pthread
pty pwd regex resolv sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stdckdint stdbit
stddef stdint stdio stdlib stdnoreturn string strings stropts sys syslog tar termio termios tgmath threads time trace
uchar ucontext uio ulimit unistd utime utmp utmpx values wait wchar wctype wordexp x86intrin
"""
)
"""Headers of C23, POSIX.1-2017, Linux and GCC, without `.h`; a generated header must not shadow one of them."""
