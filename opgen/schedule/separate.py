"""separate: a sum of products over several indices, summed over one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Binary, Block, Buffer, Call, Expr, For, If, Kernel, Let, Load, Stmt, Store
from opgen.loop.walk import (
    declares,
    expressions,
    free_vars,
    holds_loop,
    loops_in,
    map_stmt,
    operands,
    parts,
    stores,
    substitute,
    substitute_expr,
    walk_expr,
    with_operands,
)
from opgen.passes.scope import entered
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import before_nest, buffer_at, nest_to_precede, require_fresh, require_loops, with_body
from opgen.schedule.values import LoopName, Made


@primitive("sums", "separate s -> first", reorders_sums=True)
class Separate(Step):
    """Makes of a sum of products `u[y, r] * v[x, s] * image[i[y, r], j[x, s]]` the sum over `s` first, for every row of
    `image`, then the one over `r` of these.
    """

    loop: LoopName
    first: Annotated[str, Made("{loop}_first")]

    def run(self, kernel: Kernel) -> Kernel:
        return separate(kernel, self.loop, self.first)


def separate(kernel: Kernel, loop: str, name: str) -> Kernel:
    """Sum over one index first, for all elements that the other indices of the sum may choose.

                                                     for p in 0..h:
                                                       for x in 0..w:
                                                         for s in 0..4:
        for y in ...:                                      first[p, x] += v[x, s] * image[p, j[x, s]]
          for x in ...:                                for y in ...:
            for r in 0..4:                       ->      for x in ...:
              for s in 0..4:                               for r in 0..4:
                acc += u[y, r] * v[x, s]                     acc += u[y, r] * first[i[y, r], x]
                       * image[i[y, r], j[x, s]]

    The other indices of the sum may choose elements of tensors that depend on the loop, but only by subscripts that do
    not (`i[y, r]`).  Conditions may depend on the loop or on these indices, not on both.  The order of the sum changes,
    always in the same way.  A product of some factors of a term may overflow by itself.  A floating sum over the loop
    must have a term wherever it is read: an empty sum, 0, times an infinite factor is NaN.
    """
    require_loops(kernel, "separate", [loop])
    found = parted(kernel, loop)
    require_fresh(kernel, "separate", found.names(name))
    _require_terms(kernel, found)
    buffer, made = found.first(name)
    _require_inside(kernel, found, made)
    rest = found.rest(name)
    if found.when:  # they may have guarded reads that are now unconditional
        _require_inside(kernel, found, found.around_rest(rest), new=name)
    body = map_stmt(kernel.body, stmt=lambda s: rest if s is found.whole else s)
    return with_body(kernel, before_nest(body, found.kept, [buffer], [made]))


@dataclass(frozen=True)
class Place:
    """A subscript by which other indices of the sum choose, and the size of the dimension they choose from."""

    subscript: Expr
    size: Expr


@dataclass(frozen=True)
class Parted:
    """A sum of products, divided into the parts that depend on one of its loops and the parts that do not.

    `around` are the loops over results, `terms` those of the sum, outermost first.  `inner` and `when` are the factors
    and conditions that depend on the loop, `outer` and `otherwise` the others.
    """

    loop: For
    around: tuple[For, ...]
    terms: tuple[For, ...]
    whole: Stmt
    store: Store
    inner: tuple[Expr, ...]
    outer: tuple[Expr, ...]
    when: tuple[Expr, ...]
    otherwise: tuple[Expr, ...]
    places: list[Place] = field(default_factory=list)

    @property
    def along(self) -> list[tuple[str, Expr, Expr]]:
        """Dimensions of the first sums: loops' names without a prefix, sizes, and the places that are read.

        A place has the position of the loop over results that chooses it.
        """
        chosen = {p.subscript: b.index(0) for p in self.places}
        used = {n for e in (*self.inner, *self.when) for n in free_vars(_placed(e, chosen))}
        order = [s.var for s in self.around]
        found: list[tuple[int, int, str, Expr, Expr]] = [
            (at, 1, s.var, s.stop, b.var(s.var)) for at, s in enumerate(self.around) if s.var in used
        ]
        names = used | {self.loop.var}
        for place in self.places:
            at = min((order.index(n) for n in free_vars(place.subscript) if n in order), default=len(order))
            name = _fresh(order[at] if at < len(order) else self.kept, names)
            names.add(name)
            found.append((at, 0, name, place.size, place.subscript))
        return [(name, size, here) for _, _, name, size, here in sorted(found, key=lambda f: f[:2])]

    @property
    def kept(self) -> str:
        """A loop of the sum that stays."""
        return next(s.var for s in self.terms if s is not self.loop)

    def names(self, name: str) -> list[str]:
        """Return the new names."""
        return [name, f"{name}_acc", f"{name}_{self.loop.var}", *(f"{name}_{n}" for n, _, _ in self.along)]

    def first(self, name: str) -> tuple[Buffer, Stmt]:
        """Return the buffer of the sums over the loop, and the loop nest that computes them."""
        dtype = self.store.value.type.dtype
        acc = Buffer(f"{name}_acc", dtype, (), "register")
        so_far = Load(acc.name, (), dtype)
        chosen = {here: b.var(f"{name}_{n}") for n, _, here in self.along}
        step: Stmt = Store(acc.name, (), _added(so_far, [_placed(e, chosen) for e in self.inner]))
        step = b.when(b.all_of(self.when), step)
        moved = {s.var: b.var(f"{name}_{s.var}") for s in (*self.around, self.loop)}
        step = substitute(For(f"{name}_{self.loop.var}", self.loop.start, self.loop.stop, step), moved)
        index = tuple(b.var(f"{name}_{n}") for n, _, _ in self.along)
        made = b.alloc(acc, b.block((Store(acc.name, (), b.const(0, dtype)), step, Store(name, index, so_far))))
        for n, size, _ in reversed(self.along):
            made = For(f"{name}_{n}", b.index(0), size, made)
        return Buffer(name, dtype, tuple(size for _, size, _ in self.along), "heap"), made

    def read(self, name: str) -> Load:
        """Return the first sum that the sum over the other indices reads."""
        return Load(name, tuple(here for _, _, here in self.along), self.store.value.type.dtype)

    def rest(self, name: str) -> Stmt:
        """Return the sum of the first sums over the other indices."""
        dtype = self.store.value.type.dtype
        so_far = Load(self.store.buffer, self.store.indices, dtype)
        step: Stmt = Store(self.store.buffer, self.store.indices, _added(so_far, [*self.outer, self.read(name)]))
        step = b.when(b.all_of(self.otherwise), step)
        for s in reversed(self.terms):
            step = step if s is self.loop else For(s.var, s.start, s.stop, step)
        return step

    def around_rest(self, rest: Stmt) -> Stmt:
        """Return the sum over the other indices, `rest`, in the loops over results."""
        for s in reversed(self.around):
            rest = For(s.var, s.start, s.stop, rest)
        return rest


def parted(kernel: Kernel, loop: str) -> Parted:
    """Return the sum that a loop is part of; raises ScheduleError if it cannot be separated."""
    path = _path(kernel.body, loop)
    steps = list(stores(path[-1])) if path else []
    homes = (k for k, s in enumerate(path) if isinstance(s, Alloc))
    home = [k for k in homes if {o.name for o in getattr(path[k], "buffers", ())} & {s.buffer for s in steps}]
    if len(steps) != 1 or not home or any(isinstance(s, Let) for s in path):
        raise _refusal(loop, "it is not part of one sum in a register")
    around = [s for s in path[: home[0]] if isinstance(s, For)]
    whole = next(s for s in path[home[0] + 1 :] if not isinstance(s, Alloc | Block))
    terms, conditions, store = _terms(loop, whole)
    factors = _factors(loop, store)
    _require_sum(kernel, loop, terms, conditions, store)
    here = next(s for s in terms if s.var == loop)
    made = Parted(
        loop=here,
        around=tuple(around),
        terms=terms,
        whole=whole,
        store=store,
        inner=tuple(f for f in factors if loop in free_vars(f)),
        outer=tuple(f for f in factors if loop not in free_vars(f)),
        when=tuple(c for c in conditions if loop in free_vars(c)),
        otherwise=tuple(c for c in conditions if loop not in free_vars(c)),
    )
    _require_free(kernel, made)
    for factor in made.inner:
        _note_places(kernel, factor, made)
    return made


def _path(body: Stmt, loop: str) -> list[Stmt]:
    """Return the statements around a loop, outermost first, and the loop."""
    found = [s for s in loops_in(body) if s.var == loop]
    if len(found) != 1:
        raise _refusal(loop, f"there are {len(found)} loops of that name")
    path: list[Stmt] = [body]
    while path[-1] is not found[0]:
        path.append(next(p for p in parts(path[-1]) if holds_loop(p, loop)))
    return path


def _terms(loop: str, whole: Stmt) -> tuple[tuple[For, ...], tuple[Expr, ...], Store]:
    """Return the loops of a sum, the conditions between them, and the store that they repeat."""
    terms: list[For] = []
    conditions: list[Expr] = []
    s = whole
    while not isinstance(s, Store):
        if isinstance(s, For) and s.kind == "serial":
            terms.append(s)
            s = s.body
        elif isinstance(s, If) and s.otherwise is None:
            conditions += _parted(s.condition)
            s = s.then
        else:
            raise _refusal(loop, "its sum is more than one step, under conditions")
    if len(terms) < 2:
        raise _refusal(loop, "its sum has no other loop")
    return tuple(terms), tuple(conditions), s


def _parted(condition: Expr) -> list[Expr]:
    """Return the terms of a conjunction."""
    if isinstance(condition, Binary) and condition.op == "and":
        return _parted(condition.left) + _parted(condition.right)
    return [condition]


def _factors(loop: str, store: Store) -> list[Expr]:
    """Return the factors of the product that a store accumulates."""
    so_far = Load(store.buffer, store.indices, store.value.type.dtype)
    match store.value:
        case Call("fma", (x, y, last)) if last == so_far:
            found = [*_multiplied(x), *_multiplied(y)]
        case Binary("add", left, term) | Binary("add", term, left) if left == so_far:
            found = _multiplied(term)
        case _:
            found = []
    if store.mask is not None or len(found) < 2:
        raise _refusal(loop, "it does not add products")
    return found


def _multiplied(e: Expr) -> list[Expr]:
    return [*_multiplied(e.left), *_multiplied(e.right)] if isinstance(e, Binary) and e.op == "mul" else [e]


def _require_sum(kernel: Kernel, loop: str, terms: Sequence[For], conditions: Sequence[Expr], store: Store) -> None:
    """Refuse anything but a sum over all its loops into one element, and loops whose names others have, too."""
    for s in terms:
        if any(s.var in free_vars(i) for i in store.indices):
            raise _refusal(loop, f"what it adds to depends on '{s.var}'")
        if sum(o.var == s.var for o in loops_in(kernel.body)) > 1:
            hint = "give the parts of a loop names of their own: partition LOOP CUT -> SUFFIX"
            raise _refusal(loop, f"there are several loops '{s.var}'", hint)
    value = store.value
    added = value.arguments[:2] if isinstance(value, Call) else operands(value)
    others = [*conditions, *store.indices, *(e for e in added if e != Load(store.buffer, store.indices, e.type.dtype))]
    if any(isinstance(n, Load) and n.buffer == store.buffer for e in others for n in walk_expr(e)):
        raise _refusal(loop, "a term or a condition depends on what was summed so far")


def _require_terms(kernel: Kernel, found: Parted) -> None:
    """Refuse floating sums over the loop that may have no term.

    A sum has one if the first, middle or last iteration adds it, as in windows that are padded at both ends.
    """
    if not found.store.value.type.dtype.is_float:
        return
    context, loop = Context.of(kernel), found.loop
    for s in found.around:
        context = context.with_loop(s.var, s.start, s.stop)
    for at in (b.index(0), b.floordiv(loop.stop, 2), b.sub(loop.stop, 1)):
        conditions = [substitute_expr(c, {loop.var: at}) for c in found.when]
        if all(context.proves(c) for c in (b.compare("lt", at, loop.stop), b.compare("ge", at, 0), *conditions)):
            return
    raise _refusal(loop.var, "its sum may have no terms, and 0 times an infinite factor is no number")


def _require_free(kernel: Kernel, found: Parted) -> None:
    """Refuse loops with dependent ranges, conditions on two loops of the sum, and reads of data written there."""
    loops = {s.var for s in (*found.around, *found.terms)}
    for s in (*found.around, *found.terms):
        if (free_vars(s.start) | free_vars(s.stop)) & loops or s.start != b.index(0):
            raise _refusal(found.loop.var, f"the range of '{s.var}' does not begin with 0, or depends on a loop")
    others = {s.var for s in found.terms if s is not found.loop}
    if any(others & free_vars(c) for c in found.when):
        raise _refusal(found.loop.var, "a condition depends on it and on another loop of the sum")
    if not found.inner or not found.outer:
        raise _refusal(found.loop.var, "some factors must depend on it, and others not")
    written = {s.buffer for s in stores(nest_to_precede(kernel.body, found.loop.var))}
    read = {n.buffer for e in (*found.inner, *found.when) for n in walk_expr(e) if isinstance(n, Load)}
    if read & written:
        raise _refusal(found.loop.var, f"'{min(read & written)}' is written there, too")


def _note_places(kernel: Kernel, e: Expr, found: Parted) -> None:
    """Record the subscripts by which other loops of the sum choose the elements of a factor."""
    others = {s.var for s in found.terms if s is not found.loop}
    if not others & free_vars(e):
        return
    if not isinstance(e, Load):
        if not operands(e):
            raise _refusal(found.loop.var, f"a factor depends on it and on '{min(others & free_vars(e))}'")
        for operand in operands(e):
            _note_places(kernel, operand, found)
        return
    if e.mask is not None:
        raise _refusal(found.loop.var, "a factor is read under a mask")
    shape = buffer_at(kernel, e.buffer, found.loop).shape
    for subscript, size in zip(e.indices, shape, strict=True):
        if not others & free_vars(subscript):
            continue
        if found.loop.var in free_vars(subscript):
            raise _refusal(found.loop.var, f"a subscript of '{e.buffer}' depends on it and on another loop of the sum")
        known = next((p for p in found.places if p.subscript == subscript), None)
        if known is None:
            found.places.append(Place(subscript, size))
        elif known.size != size:
            raise _refusal(found.loop.var, "a subscript chooses from dimensions of several sizes")


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _placed(e: Expr, chosen: Mapping[Expr, Expr]) -> Expr:
    """Return a factor read at any place, where other loops of the sum would choose one."""
    if isinstance(e, Load):
        indices = tuple(chosen[i] if i in chosen else _placed(i, chosen) for i in e.indices)
        return Load(e.buffer, indices, e.dtype, e.mask)
    return with_operands(e, tuple(_placed(o, chosen) for o in operands(e)))


def _added(so_far: Expr, factors: Sequence[Expr]) -> Expr:
    """Return the sum so far plus a product, rounded once if the type is floating."""
    *others, last = factors
    if not others:
        return Binary("add", so_far, last)
    product = others[0]
    for factor in others[1:]:
        product = Binary("mul", product, factor)
    if last.type.dtype.is_float:
        return Call("fma", (product, last, so_far))
    return Binary("add", so_far, Binary("mul", product, last))


def _require_inside(kernel: Kernel, found: Parted, made: Stmt, new: str | None = None) -> None:
    """Refuse reads that may be out of bounds without the conditions around the sum, or between its loops."""

    def visit(s: Stmt, context: Context) -> None:
        for e in (n for x in expressions(s) for n in walk_expr(x)):
            if isinstance(e, Load) and e.indices and e.buffer != new and not declares(made, e.buffer):
                for i, size in zip(e.indices, buffer_at(kernel, e.buffer, found.loop).shape, strict=True):
                    if not (context.proves(b.compare("ge", i, 0)) and context.proves(b.compare("lt", i, size))):
                        raise _refusal(
                            found.loop.var, f"for all that may be chosen, reads of '{e.buffer}' may lie outside"
                        )
        for p, inside in entered(s, context):
            visit(p, inside)

    visit(made, Context.of(kernel))


def _refusal(loop: str, why: str, hint: str | None = None) -> ScheduleError:
    return ScheduleError(f"separate {loop}: {why}", hint)
