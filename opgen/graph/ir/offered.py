"""Elements of inputs that may decide about shapes; reads are recorded while a graph is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opgen.graph.ir.values import Array


class Offered(Mapping[str, Array]):
    """Elements of inputs by name; `asked` has copies of those that were read.

    `derived`: they may also be read for values computed from them, such as the largest of some lengths.
    """

    def __init__(self, arrays: Mapping[str, Array], derived: bool = True) -> None:
        self._arrays = arrays
        self.derived = derived
        self.asked: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self.asked:
            self.asked[name] = self._arrays[name].copy()
        return self.asked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)
