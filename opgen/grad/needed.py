"""Selection of the definitions that a gradient uses, in dependency order."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec.model.model import Definition
from opgen.spec.model.walk import reads


def needed(definitions: list[Definition], final: Definition, stepwise: bool) -> tuple[Definition, ...]:
    """Return the definitions that the final one uses, each after those that it reads.

    In a recurrence (`stepwise`), the order is that within one step.
    """
    known = {d.tensor: d for d in definitions}
    if stepwise:
        used, left_over = {final.tensor}, [final]
        while left_over:
            new = {n for n in _reads_of(left_over.pop()) if n in known} - used
            used |= new
            left_over += [known[n] for n in sorted(new)]
        return tuple(d for d in definitions if d.tensor in used)
    done: dict[str, Definition] = {}
    left = [(final, _reads_of(final))]
    while left:  # iterative: a chain may be longer than the recursion limit
        d, rest = left[-1]
        missing = next((n for n in rest if n in known and n not in done), None)
        if missing is None:
            done[d.tensor] = d
            left.pop()
        else:
            left.append((known[missing], _reads_of(known[missing])))
    return tuple(done.values())


def _reads_of(d: Definition) -> Iterator[str]:
    """Yield the tensors that a definition reads."""
    return (r.tensor for e in (d.value, *(r.extent for r in d.indices)) for r in reads(e))
