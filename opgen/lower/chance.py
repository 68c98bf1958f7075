"""Random numbers: `random(seed, i)` as the statements that compute it.

Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"): ten rounds of products
and exclusive ors on a counter, under a key.  The key's words are the integer part of the seed and 2**32 times the rest
of it, modulo 2**32; the counter is `i`.  The number is the first 27 bits of the first word and 26 of the second, over
2**53: a float64 from 0 to below 1, the same on every machine.
"""

from __future__ import annotations

from opgen.dtypes import FLOAT64, INT32, INT64, UINT64
from opgen.loop import build as b
from opgen.loop.nodes import Binary, BinaryOp, Buffer, Call, Expr, Load, Store
from opgen.lower.scope import Names, Scope

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK = 2**32 - 1
_HELD = 2 + 2 * _ROUNDS
"""Words that have a place: those of the key, and the two products of each round."""


def drawn(seed: Expr, number: Expr, names: Names, scope: Scope) -> Expr:
    """Return the number of a float64 seed and an int64 counter."""
    room = Buffer(names.fresh("random"), UINT64, (b.index(_HELD),), "register")
    scope.allocs.append(room)
    whole = Call("floor", (seed,))
    rest = Binary("mul", b.const(2.0**32, FLOAT64), Binary("sub", seed, whole))
    keys = [_low(b.cast(UINT64, b.cast(INT64, part))) for part in (whole, rest)]
    scope.before += [Store(room.name, (b.index(at),), key) for at, key in enumerate(keys)]
    key_words = [_word(room, at) for at in range(2)]
    counter = b.cast(UINT64, number)
    x = [_low(counter), _of("shr", counter, 32), b.const(0, UINT64), b.const(0, UINT64)]
    for r in range(_ROUNDS):
        products = []
        for at, word in enumerate((x[0], x[2])):
            place = 2 + 2 * r + at
            scope.before.append(Store(room.name, (b.index(place),), _of("mul", word, _MULTIPLIERS[at])))
            products.append(_word(room, place))
        key = [_low(_of("add", word, r * step & _MASK)) for word, step in zip(key_words, _KEY_STEPS, strict=True)]
        first, second = (_of("shr", product, 32) for product in products)
        x = [
            Binary("xor", Binary("xor", second, x[1]), key[0]),
            _low(products[1]),
            Binary("xor", Binary("xor", first, x[3]), key[1]),
            _low(products[0]),
        ]
    high, low = (b.cast(FLOAT64, b.cast(INT32, _of("shr", word, bits))) for word, bits in ((x[0], 5), (x[1], 6)))
    bits = Binary("add", Binary("mul", high, b.const(2.0**26, FLOAT64)), low)
    return Binary("mul", bits, b.const(2.0**-53, FLOAT64))


def _word(room: Buffer, at: int) -> Load:
    return Load(room.name, (b.index(at),), UINT64)


def _of(op: BinaryOp, x: Expr, value: int) -> Expr:
    return Binary(op, x, b.const(value, UINT64))


def _low(x: Expr) -> Expr:
    """Return the lower 32 bits."""
    return _of("and", x, _MASK)
