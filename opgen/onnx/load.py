"""A model in ONNX's format to a `Model`, whose calls are of ops that have specs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from opgen.compiler import specs as models
from opgen.graph.build.model import Model
from opgen.onnx.errors import Complaint, MalformedModelError, UnsupportedModelError
from opgen.onnx.functions import Types, domain, local_functions, opsets
from opgen.onnx.given import Opened
from opgen.onnx.importer import main_model
from opgen.onnx.interface import spec_of
from opgen.onnx.order import graphs_in
from opgen.onnx.package import OLDEST, newest, onnx
from opgen.onnx.scope import Import, TooManyNodesError
from opgen.onnx.source import ModelSource, Source, parsed, read
from opgen.onnx.specs import specs_digest, specs_file
from opgen.spec.model.model import Module


@cache
def operators() -> Module:
    """Return the ops of models, read once for all processes.  Raises InternalError if their specs are missing."""
    return models.load(specs_file(), specs_digest())


def load(source: ModelSource, module: Module | None = None) -> Model:
    """Return the model of a file, bytes, or a `ModelProto`; `module` has its operators' specs (those of ONNX).

    External data are read in the folder of the file and nowhere else.  Raises MalformedModelError, and
    UnsupportedModelError with everything that the model needs and opgen does not have; FileRefusedError for a file
    that cannot be read, PackageMissingError without the package `onnx`.
    """
    return _loaded(read(source), module)


def load_opened(given: Opened) -> Model:
    """Apply `load` to a file that is open."""
    return _loaded(parsed(given), None)


def _loaded(given: Source, module: Module | None) -> Model:
    proto = given.proto
    versions = _versions(proto, given.name)
    local = local_functions(proto)
    module = operators() if module is None else module
    types = Types(proto.ir_version) if _needs_types(proto, module, versions) else None
    shared = Import(module, given.name, given.folder, local, types)
    try:
        model = main_model(shared, proto.graph, versions)
    except TooManyNodesError as error:
        raise UnsupportedModelError(given.name, [Complaint(str(error))]) from error
    except RecursionError as error:
        raise MalformedModelError(given.name, [Complaint("its graphs nest too deeply")]) from error
    shared.raise_if_any()
    return model


def _versions(proto: Any, source: str) -> dict[str, int]:
    """Return the opsets of a model.  Raises MalformedModelError and UnsupportedModelError."""
    found = opsets(proto.opset_import)
    if len(found) < len(proto.opset_import):
        raise MalformedModelError(source, [Complaint("it names a domain of operators twice")])
    version = found.get("")
    nodes = [n for n in proto.graph.node if domain(n.domain) == ""]
    if version is not None and not OLDEST <= version <= newest() and not _same_since(version, nodes):
        reason = f"it is of opset {version}; supported are {OLDEST} to {newest()}"
        named = [Complaint(reason, n.name or n.op_type, n.op_type) for n in nodes]
        raise UnsupportedModelError(source, named or [Complaint(reason)])
    return found


def _same_since(version: int, nodes: Sequence[Any]) -> bool:
    """Return True if there are operators, all the same in an older opset and in the oldest supported one."""
    defs = onnx().defs
    if not 1 <= version < OLDEST or not nodes:
        return False
    try:
        return all(
            defs.get_schema(n.op_type, version, "").since_version
            == defs.get_schema(n.op_type, OLDEST, "").since_version
            for n in nodes
        ) and not any(list(graphs_in(n)) for n in nodes)
    except defs.SchemaError:
        return False


def _needs_types(proto: Any, module: Module, versions: dict[str, int]) -> bool:
    """Return True if some node has no spec, so that a function that depends on types may replace it."""
    bodies = [(proto.graph.node, versions), *((f.node, opsets(f.opset_import)) for f in proto.functions)]
    return any(_some_without(nodes, module, of) for nodes, of in bodies)


def _some_without(nodes: Iterable[Any], module: Module, versions: dict[str, int]) -> bool:
    for node in nodes:
        of = domain(node.domain)
        if of in versions and spec_of(module, of, node.op_type, versions[of]) is None:
            return True
        if any(_some_without(graph.node, module, versions) for graph in graphs_in(node)):
            return True
    return False
