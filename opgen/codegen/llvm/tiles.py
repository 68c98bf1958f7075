"""Buffers in space "tile" in the registers of a matrix unit (AMX), and tile loops as its instructions.

A CPU has eight such registers, of up to 16 rows of 64 bytes.  A buffer's tiles take one each for sums; the others hold
operands.  Their sizes are configured at the entry of a function, and they are released at its end.  On a CPU without
the unit, or for a loop nest that it cannot execute, the buffer is memory and the loops are loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from opgen.codegen.llvm.affine import constant, constant_of, materialise, plus, times
from opgen.codegen.llvm.function import Function, Poly, Tiles
from opgen.codegen.llvm.memory import address_of, flattened
from opgen.loop.analysis.tiles import EDGE, PAIR, Fill, Move, Multiply, Operation, Region, operation
from opgen.loop.nodes import Alloc, Const, For, Load, Stmt, Store
from opgen.loop.walk import expressions, loops_in, parts, walk, walk_expr

REGISTERS = 8
"""Each of up to `EDGE` rows of as many pairs, or numbers of the same size."""


def plan(fn: Function, s: Alloc) -> Tiles | None:
    """Return the registers of a buffer and the instructions for all its statements.

    None if there are none, or if threads that share a loop meanwhile would need them.
    """
    shared = any(p.kind == "parallel" for p in loops_in(s.body))
    if fn.tiles is not None or shared or not fn.module.target.has_tiles:
        return None
    nests = list(_nests(s.body, s.buffer.name))
    found = {id(n): operation(n) for n in nests if isinstance(n, For)}
    operations = {key: o for key, o in found.items() if o is not None and _possible(fn, s, o)}
    shape = [int(e.value) for e in s.buffer.shape if isinstance(e, Const)]
    count = prod(shape[:-2])
    products = [o for o in operations.values() if isinstance(o, Multiply)]
    sizes = {(o.rows, o.columns, o.depth) for o in products} if products else set()
    if len(operations) < len(nests) or len(shape) < 2 or count > REGISTERS - 2 or len(sizes) != 1:
        return None
    rows, columns, depth = sizes.pop()
    if any((o.rows, o.columns) != (rows, columns) for o in operations.values()) or shape[-2:] != [rows, columns]:
        return None
    places = {_tile(s.buffer.name, o) for o in operations.values()}
    registers = {place: number for number, place in enumerate(sorted(p for p in places if p is not None))}
    if None in places or len(registers) > count:
        return None
    return Tiles(s.buffer.name, operations, registers, _configured(len(registers), rows, columns, depth))


def _nests(s: Stmt, buffer: str) -> Iterator[Stmt]:
    """Yield the outermost tile loops that touch a buffer, and any other statement that touches it."""
    if isinstance(s, For) and s.kind == "tile":
        if any(_touches(p, buffer) for p in walk(s)):
            yield s
        return
    if _touches(s, buffer):
        yield s
    for p in parts(s):
        yield from _nests(p, buffer)


def _touches(s: Stmt, buffer: str) -> bool:
    if isinstance(s, Store) and s.buffer == buffer:
        return True
    return any(isinstance(n, Load) and n.buffer == buffer for e in expressions(s) for n in walk_expr(e))


def _possible(fn: Function, s: Alloc, o: Operation) -> bool:
    """Return True if a nest fits the registers' size, and its operands in memory are in rows."""
    if max(o.rows, o.columns) > EDGE:
        return False
    match o:
        case Fill():
            return o.target.buffer == s.buffer.name
        case Move():
            outside = o.source if o.target.buffer == s.buffer.name else o.target
            return s.buffer.name in (o.target.buffer, o.source.buffer) and _in_rows(fn, s, outside)
        case Multiply():
            deep = o.depth <= EDGE
            return deep and o.target.buffer == s.buffer.name and all(_in_rows(fn, s, r) for r in (o.left, o.right))


def _in_rows(fn: Function, s: Alloc, region: Region) -> bool:
    """Return True if neighbours in a row are neighbours in memory that exists before the tiles do."""
    if region.buffer == s.buffer.name or region.buffer not in fn.memories:
        return False
    return constant_of(_step(fn, region.buffer, region.columns)) == _width(fn, region.buffer)


def _width(fn: Function, buffer: str) -> int:
    """Return the elements in a column of an operand: pairs of bfloat16 are two."""
    return PAIR // fn.memory(buffer).buffer.dtype.bytes


def _tile(buffer: str, o: Operation) -> tuple[int, ...] | None:
    """Return the indices of the buffer's tile that a nest works on."""
    region = o.source if isinstance(o, Move) and o.source.buffer == buffer else o.target
    *others, row, column = region.first
    steps = region.rows[-2:] == (1, 0) and region.columns[-2:] == (0, 1)
    if not steps or any(region.rows[:-2]) or any(region.columns[:-2]) or (row, column) != (Const(0), Const(0)):
        return None
    place = tuple(int(e.value) for e in others if isinstance(e, Const))
    return place if len(place) == len(others) else None


def _configured(sums: int, rows: int, columns: int, depth: int) -> bytes:
    """Return the 64 bytes that LDTILECFG reads: palette 1, bytes in a row of each register, rows of each.

    Registers from `sums` on hold left operands and right ones by turns.
    """
    shapes = [(rows, columns)] * sums
    shapes += [(rows, depth) if n % 2 == 0 else (depth, columns) for n in range(REGISTERS - sums)]
    widths = b"".join((PAIR * width).to_bytes(2, "little") for _, width in shapes)
    heights = bytes(height for height, _ in shapes)
    return bytes([1]) + bytes(15) + widths.ljust(32, b"\0") + heights.ljust(16, b"\0")


# Emission -----------------------------------------------------------------------------------------


def enter(fn: Function, tiles: Tiles) -> None:
    """Bring a buffer's tiles into scope: configured at the function's entry, or here where they may be configured
    otherwise by then, or released by a loop that threads share.
    """
    if fn.threads is not None or fn.configured not in (None, tiles.configuration):
        fn.writer.line(_configure(fn, tiles.configuration))
    elif fn.configured is None:
        fn.writer.first(_configure(fn, tiles.configuration))
    fn.configured = fn.configured or tiles.configuration
    fn.tiles = tiles


def leave(fn: Function, tiles: Tiles) -> None:
    fn.tiles = None
    if fn.threads is None and fn.configured is not None and fn.configured != tiles.configuration:
        fn.writer.line(_configure(fn, fn.configured))


def release(fn: Function) -> None:
    """Release the registers at the end of a function."""
    if fn.configured is not None:
        symbol = fn.module.declare("llvm.x86.tilerelease", "void @llvm.x86.tilerelease()")
        fn.writer.line(f"call void {symbol}()")


def _configure(fn: Function, configuration: bytes) -> str:
    text = "".join(f"\\{byte:02X}" for byte in configuration)
    name = f"{fn.module.name}.tiles.{configuration.hex().strip('0')}"
    fn.module.helpers[name] = f'@{name} = private unnamed_addr constant [64 x i8] c"{text}", align 64'
    symbol = fn.module.declare("llvm.x86.ldtilecfg", "void @llvm.x86.ldtilecfg(ptr)")
    return f"call void {symbol}(ptr @{name})"


def emit(fn: Function, s: For) -> bool:
    """Emit the instruction for a nest of tile loops; return True if there is one."""
    tiles = fn.tiles
    o = tiles.operations.get(id(s)) if tiles is not None else None
    if tiles is None or o is None:
        return False
    place = _tile(tiles.buffer, o)
    assert place is not None
    register = tiles.registers[place]
    match o:
        case Fill():
            _call(fn, "tilezero", "i8", f"i8 {register}")
        case Move() if o.target.buffer == tiles.buffer:
            _load(fn, register, o.source)
        case Move():
            tiles.forget()
            _call(fn, "tilestored64", "i8, ptr, i64", f"i8 {register}, {_address(fn, o.target)}")
        case Multiply():
            left = _operand(fn, tiles, o.left, 0, ())
            right = _operand(fn, tiles, o.right, 1, (left,))
            _call(fn, "tdpbf16ps", "i8, i8, i8", f"i8 {register}, i8 {left}, i8 {right}")
    return True


def _operand(fn: Function, tiles: Tiles, region: Region, side: int, kept: tuple[int, ...]) -> int:
    """Return the register that holds a part of memory as a left (0) or right (1) operand, loaded if none does."""
    base = _base(fn, region)
    key = (side, region.buffer, region.rows, region.columns, tuple(sorted(base.items())))
    register = tiles.held.pop(key, None)
    if register is None:
        sums = len(tiles.registers)
        mine = [r for r in range(sums, REGISTERS) if (r - sums) % 2 == side]
        busy = {r: k for k, r in tiles.held.items()}
        register = next((r for r in mine if r not in busy), None)
        if register is None:
            register = next(r for r in tiles.held.values() if r in mine and r not in kept)
            del tiles.held[busy[register]]
        _load(fn, register, region)
    tiles.held[key] = register
    return register


def _load(fn: Function, register: int, region: Region) -> None:
    fn.loaded.add(region.buffer)
    _call(fn, "tileloadd64", "i8, ptr, i64", f"i8 {register}, {_address(fn, region)}")


def _call(fn: Function, name: str, types: str, operands: str) -> None:
    symbol = fn.module.declare(f"llvm.x86.{name}", f"void @llvm.x86.{name}({types})")
    fn.writer.line(f"call void {symbol}({operands})")


def _address(fn: Function, region: Region) -> str:
    """Return the operands of a tile load or store: where the first row is, and how many bytes on the next."""
    memory = fn.memory(region.buffer)
    pointer, _ = address_of(fn, memory, _base(fn, region))
    step = times(fn, _step(fn, region.buffer, region.rows), constant(memory.buffer.dtype.bytes))
    return f"ptr {pointer}, i64 {materialise(fn, step)}"


def _base(fn: Function, region: Region) -> Poly:
    """Return the number of a region's first element."""
    at, _ = flattened(fn, fn.memory(region.buffer), region.first)
    return at.base


def _step(fn: Function, buffer: str, steps: tuple[int, ...]) -> Poly:
    """Return the distance of rows or columns in elements."""
    total: Poly = {}
    for step, stride in zip(steps, fn.memory(buffer).strides, strict=True):
        total = plus(total, times(fn, stride, constant(step)))
    return total


__all__ = ["emit", "enter", "leave", "plan", "release"]
