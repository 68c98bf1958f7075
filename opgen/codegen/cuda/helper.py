"""A device function of emitted code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """A function: its result, its parameters, its body (one line, or several), a comment and the helpers it calls."""

    result: str
    parameters: str
    body: str
    note: str = ""
    needs: tuple[str, ...] = ()

    def render(self, name: str) -> str:
        lines = "\n".join(f"    {line}" for line in self.body.strip().split("\n"))
        note = f"// {self.note}\n" if self.note else ""
        return f"{note}static __device__ __forceinline__ {self.result} {name}({self.parameters}) {{\n{lines}\n}}\n"
