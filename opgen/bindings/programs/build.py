"""From a graph to a library that runs without Python, in a folder of its own (`publish.py` moves it to the user's).

DIR/include/NAME.h, NAME.hpp     the interfaces in C and C++
DIR/lib/libNAME.a, libNAME.so    the program: kernels, the entry that runs them, the code that opens it
DIR/lib/cmake/NAME/...           find_package(NAME)
DIR/share/NAME.weights           the constants, mapped where the program runs
DIR/src/NAME/NAME.c              the glue, to be read

The kernels are those that Python runs on this machine, for these sizes: results are the same, bit for bit.  On a CPU
without the instructions they use, opening the library reports that.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from opgen.bindings.c.interface import WRONG_ABI
from opgen.bindings.c.layout import fitted
from opgen.bindings.c.link import Tools, archive, compile_sources, link_shared
from opgen.bindings.c.parallel import LOOP, loop_object
from opgen.bindings.c.render import environment as c_environment
from opgen.bindings.cpp.layout import call
from opgen.bindings.programs.view import ProgramView, identifier, program_view
from opgen.bindings.programs.weights import Weights, layout, pieces
from opgen.bindings.workplace import write
from opgen.compiler import toolchain
from opgen.diagnostics import UserError
from opgen.graph.ir.nodes import Constant, Graph
from opgen.graph.kernels.parallel_build import Progress
from opgen.graph.program.prepare import Complete, complete, constants_for
from opgen.graph.program.program import Program
from opgen.graph.program.program_ir import STEP_BITS, entry_code
from opgen.loop.status import FIRST_CHECK, OUT_OF_MEMORY
from opgen.spec.resolve.names import why_no_prefix

_environment = c_environment.overlay(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.PackageLoader("opgen.bindings.programs", "templates"),
            jinja2.PackageLoader("opgen.bindings.c", "templates"),
        ]
    )
)
_environment.filters = {
    **c_environment.filters,
    "declared": lambda tensors, inputs: [
        f"{'const ' if i < inputs else ''}{t.element}* {t.parameter}" for i, t in enumerate(tensors)
    ],
}
_environment.globals = {**c_environment.globals, "call": call}


@dataclass(frozen=True)
class Built:
    """Results of a build: the files, the program in them, and the values that filled their texts."""

    files: tuple[Path, ...]
    program: Program
    view: ProgramView


def build_program(
    graph: Graph, source: str, folder: Path, prefix: str | None = None, progress: Progress | None = None
) -> Built:
    """Build the library of a graph into a folder.

    `source` describes its source for readers; `prefix` (the graph's name if not given) begins every name.  Raises
    UserError for a prefix that is not a name in C, or without a C compiler.
    """
    name = identifier(graph.name).lower() if prefix is None else prefix
    require_prefix(name)
    tools = Tools.host()
    made = complete(graph, progress=progress)
    objects = _objects(made, name)
    constants = constants_for(made, graph)
    weights = layout(constants, b"".join(objects.values()))
    view = program_view(made.program, graph, weights, name, source, toolchain.host())
    texts = [write(folder / path, text) for path, text in _texts(view).items()]
    share = _weights(folder / "share" / f"{name}.weights", weights, constants)
    libraries = _libraries(folder, view, tools, objects)
    return Built((*texts, *libraries, share), made.program, view)


def require_prefix(name: str) -> None:
    """Raise UserError for a name that cannot begin the names of a library."""
    reason = why_no_prefix(name)
    if reason is not None:
        raise UserError(f"'{name}' cannot begin the names of a library: it is {reason}; give another with --prefix")


def _objects(made: Complete, name: str) -> dict[str, bytes]:
    """Return the object code of the entry, of the parallel loop and of each kernel, by name."""
    target = toolchain.host()
    entry = f"{name}_entry"
    loop, shared = loop_object(name, platform.machine(), target)
    code = {loop: shared, entry: entry_code(entry, made.program.entry)}
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
        "loop": LOOP,
        "workspaces": False,
        "step_bits": STEP_BITS,
        "out_of_memory": OUT_OF_MEMORY,
        "first_check": FIRST_CHECK,
        "abi_message": WRONG_ABI,
    }
    texts = {path: _environment.get_template(template).render(**values) for path, template in paths.items()}
    return {path: fitted(text) if path.endswith(".c") else text for path, text in texts.items()}


def _weights(path: Path, weights: Weights, constants: Iterable[Constant]) -> Path:
    """Write the file of constants."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for piece in pieces(weights, tuple(constants)):
            file.write(piece)
    return path


def _libraries(folder: Path, view: ProgramView, tools: Tools, objects: dict[str, bytes]) -> tuple[Path, ...]:
    """Compile the glue, and link it with the object code, by symbol."""
    name = view.prefix
    source = (folder / "src" / name / f"{name}.c").resolve()
    own = Tools((*tools.cc, f"-I{(folder / 'include').resolve()}"), tools.ar)
    shared, static = folder / "lib" / f"lib{name}.so", folder / "lib" / f"lib{name}.a"
    with tempfile.TemporaryDirectory(prefix="opgen-link-") as place:
        work = Path(place)
        paths = compile_sources(own, [source], work, 1)
        for symbol, code in objects.items():
            paths.append(work / f"{symbol}.o")
            paths[-1].write_bytes(code)
        link_shared(tools, paths, [f.name for f in view.functions.values()], shared.resolve())
        archive(tools, paths, static.resolve())
    return shared, static
