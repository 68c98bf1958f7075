"""From a graph to a library that runs without Python.

DIR/include/NAME.h, NAME.hpp     the interfaces in C and C++
DIR/lib/libNAME.a, libNAME.so    the program: kernels, the entry that runs them, what opens it
DIR/lib/cmake/NAME/...           find_package(NAME)
DIR/share/NAME.weights           the constants, mapped where the program runs
DIR/src/NAME/NAME.c              the glue, to be read

The kernels are those that Python runs on this machine, for these sizes: results are the same, bit for bit.  A library
that is opened on a CPU that lacks what they use says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from opgen import files as plain
from opgen.bindings.c.interface import WRONG_ABI
from opgen.bindings.c.link import Tools, archive, compile_sources, link_shared
from opgen.bindings.c.render import environment as c_environment
from opgen.bindings.c.workplace import workplace
from opgen.bindings.files import update
from opgen.bindings.programs.view import ProgramView, identifier, program_view
from opgen.bindings.programs.weights import Weights, layout, pieces
from opgen.diagnostics import UserError
from opgen.graph.making import Progress
from opgen.graph.nodes import Constant, Graph
from opgen.graph.prepare import Complete, complete, constants_for
from opgen.graph.program import Program
from opgen.graph.program_ir import STEP_BITS, entry_ir
from opgen.loop.status import FIRST_CHECK, OUT_OF_MEMORY
from opgen.runtime import toolchain
from opgen.runtime.parallel_ir import PIECES
from opgen.runtime.pool_ir import SPINS
from opgen.spec.names import why_no_prefix

_environment = c_environment.overlay(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.PackageLoader("opgen.bindings.programs", "templates"),
            jinja2.PackageLoader("opgen.bindings.c", "templates"),
        ]
    )
)


@dataclass(frozen=True)
class Built:
    """What was made: the files, the program in them, and what their texts were filled with."""

    files: tuple[Path, ...]
    program: Program
    view: ProgramView


def build_program(
    graph: Graph, source: str, folder: Path, prefix: str | None = None, progress: Progress | None = None
) -> Built:
    """Build the library of a graph into a folder.

    `source` says for readers what it is made from; `prefix` (the graph's name if not given) begins every name.  Raises
    UserError for a prefix that is no name in C, or if there is no C compiler.
    """
    name = identifier(graph.name).lower() if prefix is None else prefix
    reason = why_no_prefix(name)
    if reason is not None:
        raise UserError(f"'{name}' cannot begin the names of a library: it is {reason}; give another with --prefix")
    tools = Tools.host()
    made = complete(graph, progress=progress)
    objects = _objects(made, name)
    constants = constants_for(made, graph)
    weights = layout(constants, b"".join(objects.values()))
    view = program_view(made.program, graph, weights, name, source, toolchain.host())
    texts = _texts(view)
    for path, text in texts.items():
        update(folder / path, text)
    share = _weights(folder / "share" / f"{name}.weights", weights, constants)
    libraries = _libraries(folder, view, tools, objects)
    return Built((*(folder / path for path in texts), *libraries, share), made.program, view)


def _objects(made: Complete, name: str) -> dict[str, bytes]:
    """The object code of the entry and of each kernel, by symbol."""
    target = toolchain.host()
    entry = f"{name}_entry"
    code = {entry: toolchain.object_code(entry_ir(entry, made.program.entry, target), target, bound=True)}
    return code | {k.symbol: held.code for k, held in zip(made.program.kernels, made.kernels, strict=True)}


def _texts(view: ProgramView) -> dict[str, str]:
    name = view.prefix
    paths = {
        f"include/{name}.h": "program.h.jinja",
        f"include/{name}.hpp": "program.hpp.jinja",
        f"lib/cmake/{name}/{name}-config.cmake": "config.cmake.jinja",
        f"src/{name}/{name}.c": "program.c.jinja",
    }
    values = {
        "v": view,
        "p": f"{name}_k",
        "pieces": PIECES,
        "spins": SPINS,
        "workspaces": False,
        "step_bits": STEP_BITS,
        "out_of_memory": OUT_OF_MEMORY,
        "first_check": FIRST_CHECK,
        "abi_message": WRONG_ABI,
    }
    return {path: _environment.get_template(template).render(**values) for path, template in paths.items()}


def _weights(path: Path, weights: Weights, constants: Iterable[Constant]) -> Path:
    """Write the constants, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with open(staged, "xb") as file:
            for piece in pieces(weights, tuple(constants)):
                file.write(piece)
        os.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)
    return path


def _libraries(folder: Path, view: ProgramView, tools: Tools, objects: dict[str, bytes]) -> tuple[Path, ...]:
    name = view.prefix
    place = (folder / "lib").resolve()
    source = (folder / "src" / name / f"{name}.c").resolve()
    include = (folder / "include").resolve()
    own = Tools((*tools.cc, f"-I{include}"), tools.ar)
    with workplace(place) as work:
        paths = compile_sources(own, [source], work, 1)
        for symbol, code in objects.items():
            paths.append(work / f"{symbol}.o")
            plain.write(paths[-1], code)
        link_shared(tools, paths, [f.name for f in view.functions.values()], work / f"lib{name}.so")
        archive(tools, paths, work / f"lib{name}.a")
        for file in (f"lib{name}.so", f"lib{name}.a"):
            os.replace(work / file, place / file)
    return (place / f"lib{name}.so", place / f"lib{name}.a")
