"""Serialised programs of a model: another process starts without reading, resolving or planning the model.

A record has all that a run needs: the entry, the kernels, and the arrays that they read.  Small arrays are in the
record; others have files of their own (`opgen.runtime.memory.mapped`), shared by all records that read the same.  Its
key covers all that determines it: the model (`identity`), the types and shapes of its inputs, the elements that decide
about shapes, opgen's own source, the machine, and the requested algorithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.keys import machine_identity
from opgen.graph.ir.values import Array, Kind
from opgen.graph.program.bucketing import Way
from opgen.graph.program.limits import settings
from opgen.graph.program.loaded import LoadedProgram
from opgen.graph.program.runnable import NodeStep, Runnable
from opgen.graph.program.weights import Held, Row, Store
from opgen.runtime.kernels.loaded import Origin, loaded_code
from opgen.runtime.memory import mapped as arrays
from opgen.runtime.memory.buffers import dtype_of, empty_aligned

if TYPE_CHECKING:
    from collections.abc import Callable

    from opgen.dtypes import DType
    from opgen.graph.program.arena import ArenaPool
    from opgen.graph.program.program import Program


@dataclass(frozen=True)
class _Row:
    """An array: its key, type and shape, and its elements if it has no file of its own."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    elements: bytes | None


@dataclass(frozen=True)
class Record:
    """A serialised program; `kernels` are their keys, symbols, object codes and origins."""

    runnable: Runnable
    steps: tuple[NodeStep, ...]
    kernels: tuple[tuple[str, str, bytes, Origin], ...]
    rows: tuple[_Row | None, ...]

    def loaded(self, pool: ArenaPool, store: Store, program: Callable[[], Program]) -> LoadedProgram | None:
        """Return the program ready to run; None if some array is gone.  `program` returns its source."""
        rows: list[Row] = []
        for row in self.rows:
            held = None if row is None else _held(row, store)
            if held is None and row is not None:
                return None
            rows.append(None if held is None else (held, 0))
        kernels = [loaded_code(*kernel) for kernel in self.kernels]
        return LoadedProgram(self.runnable, self.steps, kernels, rows, pool, program)


@dataclass(frozen=True)
class _Decided:
    """Marker that the elements of some inputs decide about shapes; `by` has their names, for each program in turn."""

    by: tuple[tuple[str, ...], ...]


class Recall:
    """Serialised programs of one model.

    `identity` is unique to the model's content and its reader.  `changed` names the parts of these that have changed
    since then: programs that may be made from those are not kept.
    """

    def __init__(self, identity: str, changed: Callable[[], Sequence[str]]) -> None:
        self._identity = identity
        self._changed = changed

    def take(
        self, kinds: Mapping[str, Kind], given: Mapping[str, Array], way: Way
    ) -> tuple[Record, Mapping[str, Array]] | None:
        """Return the record for inputs of some kinds, and the elements that it is for, which are some of `given`."""
        found = pickled.take(self._key(kinds, {}, way), object)
        if isinstance(found, Record):
            return found, {}
        for names in found.by if isinstance(found, _Decided) else ():
            if all(name in given for name in names):
                known = {name: given[name].copy() for name in names}
                record = pickled.take(self._key(kinds, known, way), object)
                if isinstance(record, Record):
                    return record, known
        return None

    def keep(self, kinds: Mapping[str, Kind], known: Mapping[str, Array], way: Way, record: Record) -> None:
        """Keep a program that was made."""
        if self._changed():
            return
        if known:
            found = pickled.take(self._key(kinds, {}, way), object)
            by = found.by if isinstance(found, _Decided) else ()
            if tuple(known) not in by:
                pickled.put(self._key(kinds, {}, way), _Decided((*by, tuple(known))))
        pickled.put(self._key(kinds, known, way), record)

    def _key(self, kinds: Mapping[str, Kind], known: Mapping[str, Array], way: Way) -> str:
        identity = {
            "record": self._identity,
            "opgen": toolchain.fingerprint("."),
            "kinds": repr([(name, dtype.name, shape) for name, (dtype, shape) in kinds.items()]),
            "known": repr([(name, a.dtype.str, a.shape, a.tobytes()) for name, a in known.items()]),
            "way": way,
            "algorithms": mode(),
            "limits": repr(settings()),
            **machine_identity(),
        }
        return cache.key_of(identity)


def kept_row(key: str, array: Array) -> _Row | None:
    """Store an array and return its row; None if that is impossible."""
    dtype = dtype_of(array)
    if dtype is None:
        return None
    if array.nbytes < arrays.LEAST:
        return _Row(key, dtype, array.shape, array.tobytes())
    return _Row(key, dtype, array.shape, None) if arrays.store(key, array) else None


def _held(row: _Row, store: Store) -> Held | None:
    """Return an array of a record, shared by all programs that read it."""

    def found() -> list[Array]:
        if row.elements is None:
            array = arrays.load(row.key, row.dtype, row.shape)
            return [] if array is None else [array]
        own = empty_aligned(row.shape, row.dtype)
        own.reshape(-1).view("u1")[...] = bytearray(row.elements)
        return [own]

    held = store.of(row.key, [], found)
    return held if held.made else None
