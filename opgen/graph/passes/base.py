"""What a pass is, what it says of its work, and running several, each followed by the verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.verify import verify


@dataclass(frozen=True, slots=True)
class Note:
    """What a pass did to something (a node, a value, an edge between two nodes), or why it did nothing."""

    work: str
    about: str
    text: str

    def __reduce__(self) -> tuple[type[Note], tuple[str, str, str]]:
        return Note, (self.work, self.about, self.text)

    def __str__(self) -> str:
        return f"{self.work}: {self.about}: {self.text}"


@dataclass
class Report:
    """What passes did, in order, for `--explain`."""

    notes: list[Note] = field(default_factory=list)

    def note(self, work: str, about: str, text: str) -> None:
        self.notes.append(Note(work, about, text))

    def of(self, work: str) -> list[Note]:
        """The notes of one pass."""
        return [n for n in self.notes if n.work == work]


@dataclass(frozen=True)
class Pass:
    """A pass, declared in its own file.  `contract` says in a line what it does.

    The graph that it makes has the inputs and the outputs of the one it is given, in their order and by their names,
    and the same results, bit for bit unless the contract says otherwise.
    """

    name: str
    contract: str
    apply: Callable[[Graph, Report], Graph] = field(repr=False)
    after: tuple[str, ...] = ()
    """The passes that come before it."""
    then: tuple[str, ...] = ()
    """The passes that are run once more right after it, for what it leaves."""
    slow: bool = False
    """True if it takes long and looks at no elements of constants: its results are kept in the cache."""

    def run(self, graph: Graph, report: Report | None = None) -> Graph:
        """The graph after the pass, verified."""
        return verify(self.apply(graph, Report() if report is None else report), after=self.name)


Seen = Callable[[str, Graph], None]
"""Is told a pass's name and the graph after it."""


def run_passes(graph: Graph, passes: Iterable[Pass], report: Report | None = None, seen: Seen | None = None) -> Graph:
    """The graph after passes, in order; each is followed by the verifier, and then by `seen`.

    A pass that returns the graph that it is given, which was verified, is not followed by the verifier again.
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
