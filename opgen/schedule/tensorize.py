"""tensorize: a product of two tiles as one operation of a matrix unit, with the sums in its registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from opgen.dtypes import FLOAT32
from opgen.loop import build as b
from opgen.loop.analysis.tiles import EDGE, PAIR, Multiply, operation
from opgen.loop.nodes import Alloc, Block, Buffer, Const, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import holds_loop, loads, loops_in, map_stmt, parts, stores, substitute, with_parts
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import buffer_at, require_fresh, require_loops, with_body
from opgen.schedule.renaming import renamed
from opgen.schedule.values import LoopName, Made


@primitive("sums", "tensorize x_i, k_i, c_i -> tiles", target="cpu", reorders_sums=True)
class Tensorize(Step):
    """Makes a product of two tiles of pairs one instruction of a matrix unit."""

    rows: LoopName
    columns: LoopName
    depth: LoopName
    name: Annotated[str, Made("tiles")]

    def run(self, kernel: Kernel) -> Kernel:
        return tensorize(kernel, self.rows, self.columns, self.depth, self.name)


def tensorize(kernel: Kernel, rows: str, columns: str, depth: str, name: str) -> Kernel:
    """Keep sums in a matrix unit's registers, and multiply a tile of pairs by another at once.

                                                     alloc acc: float32[m, n] stack
        alloc acc: float32[m, n] register            alloc tiles: float32[m, n] tile
        for i in 0..m: for j in 0..n: acc[i, j] = 0  tile for .. tile for ..: tiles[..] = 0
        for k in 0..c:                          ->   for k in 0..c:
          for i in 0..m:                               tile for tiles_m in 0..m:
            for j in 0..n:                               tile for tiles_n in 0..n:
              for l in 0..p:                               tile for tiles_k in 0..p:
                acc[i, j] = dot(acc[i, j], x, y)             tiles[..] = dot(tiles[..], x, y)
        for i in 0..m: for j in 0..n: use(acc)       tile for .. tile for ..: acc[..] = tiles[..]
                                                     for i in 0..m: for j in 0..n: use(acc)

    The three loops must be perfectly nested, with 2 to 16 iterations each.  `acc` is indexed by the first two in its
    last two dimensions; one factor by the first and third, the other by the third and second.  The unit adds the terms
    of a sum in an order of its own, and numbers below 2**-126 may count as 0.  A CPU without such a unit runs the
    loops.
    """
    require_loops(kernel, "tensorize", [rows, columns, depth])
    found = _Tensorize(kernel, rows, columns, depth, name)
    require_fresh(kernel, "tensorize", [name, *found.loops])
    body = found.visit(kernel.body)
    if body is kernel.body:
        raise found.refusal("no buffer around it holds sums of a product of pairs")
    return with_body(kernel, body)


@dataclass(frozen=True)
class _Tensorize:
    kernel: Kernel
    rows: str
    columns: str
    depth: str
    name: str

    @property
    def loops(self) -> tuple[str, str, str]:
        return f"{self.name}_m", f"{self.name}_n", f"{self.name}_k"

    def refusal(self, why: str) -> ScheduleError:
        return ScheduleError(f"tensorize {self.rows}: {why}")

    def visit(self, s: Stmt) -> Stmt:
        """Return the statement with its allocated sums in tiles."""
        self._require_no_lanes(s)
        alone = isinstance(s, Alloc) and len(s.buffers) == 1
        if isinstance(s, Alloc) and alone and any(_sums(p, s.buffer.name) for p in self._products(s.body)):
            return self._held(s)
        return with_parts(s, tuple(self.visit(p) for p in parts(s)))

    def _held(self, s: Alloc) -> Stmt:
        """Return a buffer of sums, and tiles that replace it in the statements that add to it."""
        acc = s.buffer
        sizes = [int(e.value) for e in acc.shape if isinstance(e, Const)]
        if len(sizes) != len(acc.shape) or len(sizes) < 2 or acc.dtype != FLOAT32:
            raise self.refusal(f"'{acc.name}' is no array of float32 with two constant sizes")
        require_fresh(self.kernel, "tensorize", self._outer(acc))
        statements: list[Stmt] = list(s.body.statements) if isinstance(s.body, Block) else [s.body]
        adding = [i for i, p in enumerate(statements) if any(self._products(p))]
        first, last = adding[0], adding[-1] + 1
        middle = [self._tiled(p, acc) for p in statements[first:last]]
        if any(_touches(p, acc.name) for p in middle):
            raise self.refusal(f"'{acc.name}' is used between its sums otherwise")
        before, begun = self._begun(statements[:first], acc)
        tiles = Buffer(self.name, FLOAT32, acc.shape, "tile")
        held = b.alloc(tiles, b.block((begun, *middle, self._moved(acc, acc.name, self.name))))
        body = b.block((*before, held, *statements[last:]))
        return b.alloc(Buffer(acc.name, acc.dtype, acc.shape, "stack"), body)

    def _products(self, s: Stmt) -> Iterator[For]:
        """Yield the loops over rows that hold steps of the reduction."""
        return (p for p in loops_in(s) if p.var == self.rows and holds_loop(p, self.depth))

    def _begun(self, before: list[Stmt], acc: Buffer) -> tuple[list[Stmt], Stmt]:
        """Return the statements before the sums, and the initialisation of the tiles.

        That is zeros if every defined element of `acc` is 0, else a copy of `acc`.
        """
        values = [p.value for s in before for p in stores(s) if p.buffer == acc.name]
        zero = Const(0.0, values[0].type) if values else None
        if not values or any(v != zero for v in values) or any(_reads(s, acc.name) for s in before):
            return before, self._moved(acc, self.name, acc.name)
        left = [map_stmt(s, stmt=lambda p: _without_stores(p, acc.name)) for s in before]
        return left, self._moved(acc, self.name, None)

    def _outer(self, acc: Buffer) -> list[str]:
        """Return the loops over all tiles."""
        return [f"{self.name}_{d}" for d in range(len(acc.shape) - 2)]

    def _moved(self, acc: Buffer, to: str, of: str | None) -> Stmt:
        """Return the code that fills or copies all tiles."""
        m, n, _ = self.loops
        outer = self._outer(acc)
        places: tuple[Expr, ...] = tuple(b.var(v) for v in (*outer, m, n))
        value: Expr = b.const(0.0, FLOAT32) if of is None else Load(of, places, FLOAT32)
        s: Stmt = Store(to, places, value)
        for var, size in zip((n, m), (acc.shape[-1], acc.shape[-2]), strict=True):
            s = For(var, Const(0), size, s, "tile")
        for var, size in zip(reversed(outer), reversed(acc.shape[:-2]), strict=True):
            s = For(var, Const(0), size, s, "unroll")
        return s

    def _tiled(self, s: Stmt, acc: Buffer) -> Stmt:
        """Return the statement with its loop nests as products of tiles."""
        self._require_no_lanes(s)
        if isinstance(s, For) and s.var == self.rows and holds_loop(s, self.depth):
            return self._product(s, acc)
        return with_parts(s, tuple(self._tiled(p, acc) for p in parts(s)))

    def _require_no_lanes(self, s: Stmt) -> None:
        if isinstance(s, For) and s.kind == "vector" and holds_loop(s, self.depth):
            raise self.refusal(f"the loop '{s.var}' around it is {s.kind}")

    def _product(self, s: For, acc: Buffer) -> Stmt:
        loops: list[For] = []
        inner: Stmt = s
        while isinstance(inner, For) and len(loops) < 3:
            loops.append(inner)
            inner = inner.body
        if [loop.var for loop in loops] != [self.rows, self.columns, self.depth] or not isinstance(inner, Store):
            raise self.refusal(f"'{self.columns}' and '{self.depth}' do not stand directly in it and one another")
        body = renamed(inner, {acc.name: self.name}, {})
        for loop, var in zip(reversed(loops), reversed(self.loops), strict=True):
            size = int(loop.stop.value) if isinstance(loop.stop, Const) and loop.start == Const(0) else 0
            if loop.kind != "serial" or not 2 <= size <= EDGE:
                raise self.refusal(f"the loop '{loop.var}' is not a serial one of 2 to {EDGE} iterations")
            body = For(var, loop.start, loop.stop, substitute(body, {loop.var: b.var(var)}), "tile")
        assert isinstance(body, For)
        found = operation(body)
        if not isinstance(found, Multiply) or not _last_two(found, acc):
            raise self.refusal("its body does not add the product of two tiles of pairs")
        for region in (found.left, found.right):
            buffer = buffer_at(self.kernel, region.buffer, s)
            if region.across(buffer.shape) != PAIR // buffer.dtype.bytes:
                raise self.refusal(f"the pairs of a row in '{buffer.name}' are not next to each other")
        return body


def _last_two(o: Multiply, acc: Buffer) -> bool:
    """Return True if rows and columns are the last two dimensions, whole."""
    steps = o.target.rows[-2:] == (1, 0) and o.target.columns[-2:] == (0, 1)
    others = any(o.target.rows[:-2]) or any(o.target.columns[:-2])
    return steps and not others and acc.shape[-2:] == (Const(o.rows), Const(o.columns))


def _sums(s: For, buffer: str) -> bool:
    return any(p.buffer == buffer for p in stores(s)) and _reads(s, buffer)


def _reads(s: Stmt, buffer: str) -> bool:
    return any(e.buffer == buffer for e in loads(s))


def _touches(s: Stmt, buffer: str) -> bool:
    return _reads(s, buffer) or any(p.buffer == buffer for p in stores(s))


def _without_stores(s: Stmt, buffer: str) -> Stmt:
    """Remove a store to a buffer, or a loop with an empty body."""
    stores = isinstance(s, Store) and s.buffer == buffer
    return b.EMPTY if stores or (isinstance(s, For) and b.is_empty(s.body)) else s
