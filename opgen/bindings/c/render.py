"""From a module's views to C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jinja2

from opgen.bindings.c.header import header_view
from opgen.bindings.c.interface import WRONG_ABI
from opgen.bindings.c.layout import fitted
from opgen.bindings.c.library import LibraryView
from opgen.bindings.c.parallel import LOOP
from opgen.bindings.c.text import one_line, string
from opgen.dtypes import DTYPES
from opgen.loop.analysis.reach import OPERATIONS
from opgen.loop.status import FIRST_CHECK
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.memory.blocks import LARGE
from opgen.spec.model.model import Module

environment = jinja2.Environment(
    loader=jinja2.PackageLoader("opgen.bindings.c", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # C, not HTML: the views hold escaped source only
)
environment.filters["string"] = string


@dataclass(frozen=True)
class KernelTable:
    """The compiled kernels of one architecture.

    `symbols` has, for each variant and then for each specialised kernel, a symbol for each level (None: there is none).
    `rooms` are the C expressions of the memory that some need, `smalls` those for calls that run on one thread.
    `specials` are the number of the variant and the parameters' values (None: any).
    """

    levels: tuple[str, ...]
    symbols: tuple[tuple[str | None, ...], ...]
    rooms: Mapping[str, tuple[str, ...]]
    smalls: Mapping[str, tuple[str, ...]]
    specials: tuple[tuple[int, tuple[int | None, ...]], ...]


def render_header(module: Module, prefix: str | None = None, source: str | None = None) -> str:
    """Return the C header of a module; `prefix` (the module's name if not given) begins every name."""
    view = header_view(module, prefix or module.name, source or f"{module.name}.op")
    return environment.get_template("library.h.jinja").render(v=view)


def render_sources(view: LibraryView, module: Module, table: KernelTable) -> dict[str, str]:
    """Return the glue's sources without the table of kernels; keys follow the library's prefix in files' names."""
    context = {
        "v": view,
        "p": f"{view.prefix}_k",
        "types": tuple(DTYPES.values()),
        "levels": table.levels,
        "loop": LOOP,
        "workspaces": True,
        "large": LARGE,
        "kept": temporaries_ir.KEPT,
        "share": temporaries_ir.SHARE,
        "slots": temporaries_ir.SLOTS,
        "slack": temporaries_ir.SLACK,
        "operations": OPERATIONS,
        "first_check": FIRST_CHECK,
        "abi_message": WRONG_ABI,
    }

    def text(template: str) -> str:
        return fitted(environment.get_template(f"{template}.jinja").render(context))

    return {
        ".c": text("library.c"),
        **{name: text(name) for name in ("internal.h", "checks.c", "cpu.c", "threads.c")},
    }


def render_kernels(view: LibraryView, table: KernelTable) -> str:
    """Return the source that holds the table of kernels."""
    general = len(view.kernels)
    rooms = {symbol: f"room_{i}" for i, symbol in enumerate(table.rooms)}
    smalls = {symbol: f"small_{i}" for i, symbol in enumerate(table.smalls)}
    kernels = [_kernel(row, rooms, smalls) for row in table.symbols]
    comments = [one_line(v.lowered.kernel.name) for v in view.kernels]
    return environment.get_template("kernels.c.jinja").render(
        v=view,
        p=f"{view.prefix}_k",
        levels=table.levels,
        declared=sorted({s for row in table.symbols for s in row if s is not None}),
        rooms=[{"name": rooms[s], "lines": lines} for s, lines in table.rooms.items()],
        smalls=[{"name": smalls[s], "lines": lines} for s, lines in table.smalls.items()],
        kinds=["".join("f" if p.dtype.is_float else "i" for p in v.lowered.kernel.parameters) for v in view.kernels],
        kernels=[{**k, "comment": c} for k, c in zip(kernels[:general], comments, strict=True)],
        specials=[
            {
                "number": n,
                "values": ["OPEN" if v is None else v for v in values] or ["OPEN"],
                "kernel": {**k, "comment": comments[n]},
            }
            for (n, values), k in zip(table.specials, kernels[general:], strict=True)
        ],
    )


def _kernel(row: tuple[str | None, ...], rooms: Mapping[str, str], smalls: Mapping[str, str]) -> dict[str, list[str]]:
    return {
        "run": [s or "NULL" for s in row],
        "room": [rooms.get(s or "", "NULL") for s in row],
        "small": [smalls.get(s or "", "NULL") for s in row],
    }
