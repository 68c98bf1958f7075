"""Passes, their reports, and the run of several, each followed by the verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.verify import verify


@dataclass(frozen=True, slots=True)
class Note:
    """A note about a node, a value or an edge between two nodes: the change that a pass made, or why it made none."""

    work: str
    about: str
    text: str

    def __reduce__(self) -> tuple[type[Note], tuple[str, str, str]]:
        return Note, (self.work, self.about, self.text)

    def __str__(self) -> str:
        return f"{self.work}: {self.about}: {self.text}"


@dataclass
class Report:
    """Notes of passes, in order, for `--explain`."""

    notes: list[Note] = field(default_factory=list)

    def note(self, work: str, about: str, text: str) -> None:
        self.notes.append(Note(work, about, text))

    def of(self, work: str) -> list[Note]:
        """Return the notes of one pass."""
        return [n for n in self.notes if n.work == work]


@dataclass(frozen=True)
class Pass:
    """A pass, declared in its own file.  `contract` describes its effect in a line.

    The resulting graph has the same inputs and outputs as the given one, in the same order and by the same names.  It
    has the same results, bit for bit unless the contract says otherwise.
    """

    name: str
    contract: str
    apply: Callable[[Graph, Report], Graph] = field(repr=False)
    after: tuple[str, ...] = ()
    """Passes that come before it."""
    then: tuple[str, ...] = ()
    """Passes that are run once more right after it, to clean up."""
    slow: bool = False
    """True if it takes long and reads no elements of constants: its results are kept in the cache."""

    def run(self, graph: Graph, report: Report | None = None) -> Graph:
        """Return the graph after the pass, verified."""
        return verify(self.apply(graph, Report() if report is None else report), after=self.name)


Seen = Callable[[str, Graph], None]
"""Takes a pass's name and the graph after it."""


def run_passes(graph: Graph, passes: Iterable[Pass], report: Report | None = None, seen: Seen | None = None) -> Graph:
    """Return the graph after passes, in order; each is followed by the verifier, and then by `seen`.

    If a pass returns its input, which was verified, the verifier does not run again.
    """
    verified: Graph | None = None
    for each in passes:
        made = each.apply(graph, Report() if report is None else report)
        if made is not verified:
            verify(made, after=each.name)
        graph = verified = made
        if seen is not None:
            seen(each.name, graph)
    return graph
