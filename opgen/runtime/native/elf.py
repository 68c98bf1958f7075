"""Loading an object file without LLVM.

LLVM emits a kernel as a small ELF file for x86-64: code, constants, a few words of memory, calls of the C library.
Other architectures, and anything that such files do not contain, are refused.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opgen.diagnostics import InternalError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_X86_64, _RELOCATABLE = 62, 1
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8
_ALLOCATED, _EXECUTABLE = 2, 4
_ABSOLUTE = 0xFFF1
_FUNCTION = 2
_R_64, _R_PC32, _R_PLT32, _R_GOT = 1, 2, 4, (9, 41, 42)
_STUB = b"\xff\x25\x00\x00\x00\x00"
"""A jump to the address that follows."""
_STUB_BYTES = 16


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    target: int
    alignment: int


@dataclass(frozen=True)
class Symbol:
    """A symbol of an object file; `value` is its offset in its section."""

    name: str
    section: int
    value: int
    size: int
    is_function: bool


class Image:
    """An object file in memory that may be run; `image[symbol]` is an address.  It is good as long as this object."""

    def __init__(self, code: bytes, symbols: Sequence[str] = (), given: Mapping[str, int] | None = None) -> None:
        """Load an object file; `given` are the addresses of functions that are not to be looked up in the process.

        Raises InternalError for anything but an object file for x86-64, a symbol that cannot be resolved, or a missing
        one.
        """
        self._given = {} if given is None else given
        try:
            self._load(code)
        except (struct.error, LookupError, ValueError, ArithmeticError, OSError, AttributeError) as error:
            raise InternalError(f"object code cannot be loaded without LLVM: {error}") from error
        if missing := [symbol for symbol in symbols if symbol not in self._exported]:
            raise InternalError(f"object code lacks {', '.join(missing)}")

    def __getitem__(self, symbol: str) -> int:
        return self._exported[symbol]

    def _load(self, code: bytes) -> None:
        sections = _sections(code)
        if _HEADER.unpack_from(code)[2] != _X86_64:
            raise InternalError("object code is not for an x86-64 processor: loading it needs LLVM")
        symbols = _symbols(code, sections)
        self._places, text_end, size = _layout(sections, len(symbols))
        self._memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # a forked child has its own
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._stubs, self._slots = text_end - _STUB_BYTES * len(symbols), size - 8 * len(symbols)
        for i, place in self._places.items():
            s = sections[i]
            if s.kind != _NO_BITS:
                self._memory[place : place + s.size] = code[s.offset : s.offset + s.size]
        for s in sections:
            if s.kind == _RELOCATIONS and s.target in self._places:
                for where, kind, number, addend in _relocations(code, s):
                    self._relocate(self._places[s.target] + where, kind, symbols[number], number, addend)
        _protect(self._start, _pages(text_end))
        self._exported = {
            s.name: self._start + self._places[s.section] + s.value for s in symbols if s.section in self._places
        }

    def _relocate(self, where: int, kind: int, symbol: Symbol, number: int, addend: int) -> None:
        address = self._address(symbol)
        if kind in _R_GOT:
            slot = self._slots + 8 * number
            self._memory[slot : slot + 8] = struct.pack("<Q", address)
            self._memory[where : where + 4] = struct.pack("<i", slot + addend - where)
        elif kind == _R_64:
            self._memory[where : where + 8] = struct.pack("<Q", address + addend)
        elif kind in (_R_PC32, _R_PLT32):
            target = address - self._start
            if symbol.section == 0:
                target = self._stubs + _STUB_BYTES * number
                self._memory[target : target + _STUB_BYTES] = (_STUB + struct.pack("<Q", address)).ljust(_STUB_BYTES)
            self._memory[where : where + 4] = struct.pack("<i", target + addend - where)
        else:
            raise InternalError(f"object code has a relocation of type {kind}, which needs LLVM to be loaded")

    def _address(self, symbol: Symbol) -> int:
        if symbol.section == 0:
            return self._given.get(symbol.name) or _external(symbol.name)
        if symbol.section == _ABSOLUTE:
            return symbol.value
        return self._start + self._places[symbol.section] + symbol.value


def _sections(code: bytes) -> list[_Section]:
    head = _HEADER.unpack_from(code)
    if head[0][:6] != b"\x7fELF\x02\x01" or head[1] != _RELOCATABLE:
        raise InternalError("object code is not a little-endian ELF file of 64 bits: loading it needs LLVM")
    first, size, count, names = head[6], head[11], head[12], head[13]
    raw = [_SECTION.unpack_from(code, first + size * i) for i in range(count)]
    text = raw[names][4]
    return [_Section(_name(code, text + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], max(1, r[8])) for r in raw]


def _name(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


def _symbols(code: bytes, sections: list[_Section]) -> list[Symbol]:
    found: list[Symbol] = []
    for table in (s for s in sections if s.kind == _SYMBOLS):
        names = sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, info, _, section, value, size = _SYMBOL.unpack_from(code, at)
            found.append(Symbol(_name(code, names + name), section, value, size, info & 15 == _FUNCTION))
    return found


def functions(code: bytes) -> list[Symbol]:
    """Return the functions that an ELF object file defines, for whichever processor."""
    return [s for s in _symbols(code, _sections(code)) if s.is_function and s.section]


def _relocations(code: bytes, table: _Section) -> Iterator[tuple[int, int, int, int]]:
    """Yield the place, the type, the symbol's number, and the addend."""
    for at in range(table.offset, table.offset + table.size, _RELOCATION.size):
        where, info, addend = _RELOCATION.unpack_from(code, at)
        yield where, info & 0xFFFFFFFF, info >> 32, addend


def _layout(sections: list[_Section], symbols: int) -> tuple[dict[int, int], int, int]:
    """Return the place of each section, the end of code and stubs, and the total size in bytes.

    Code comes first, then, on pages of their own, data and a word for each symbol.
    """
    wanted = [(i, s) for i, s in enumerate(sections) if s.flags & _ALLOCATED and s.name != ".eh_frame"]
    places: dict[int, int] = {}
    end = 0
    for i, s in (w for w in wanted if w[1].flags & _EXECUTABLE):
        places[i] = end = -(-end // s.alignment) * s.alignment
        end += s.size
    text_end = -(-end // _STUB_BYTES) * _STUB_BYTES + _STUB_BYTES * symbols
    end = _pages(text_end)
    for i, s in (w for w in wanted if not w[1].flags & _EXECUTABLE):
        places[i] = end = -(-end // s.alignment) * s.alignment
        end += s.size
    return places, text_end, _pages(-(-end // 8) * 8 + 8 * symbols)


def _pages(size: int) -> int:
    return max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE


@functools.cache
def _external(name: str) -> int:
    """Return the address of a function of the C library's in this process."""
    for library in (None, "libm.so.6"):
        found = getattr(ctypes.CDLL(library), name, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise InternalError(f"object code calls {name}, which this process does not have")


def _protect(start: int, size: int) -> None:
    """Make memory executable and no longer writeable."""
    if _mprotect()(start, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")


@functools.cache
def _mprotect() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
