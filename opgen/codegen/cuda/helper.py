"""A device function of emitted code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """A function: its result, its parameters, its body (one line, or several), a comment and the helpers it calls.

    `on_device` is a body that says the same to a GPU alone, in its own instructions.
    """

    result: str
    parameters: str
    body: str
    note: str = ""
    needs: tuple[str, ...] = ()
    on_device: str = ""

    def render(self, name: str) -> str:
        lines = _indented(self.body)
        if self.on_device:
            lines = f"#ifdef __CUDA_ARCH__\n{_indented(self.on_device)}\n#else\n{lines}\n#endif"
        note = f"// {self.note}\n" if self.note else ""
        return f"{note}static __device__ __forceinline__ {self.result} {name}({self.parameters}) {{\n{lines}\n}}\n"


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in body.strip().split("\n"))
