"""`opgen.compile`: a model, a graph or a function as one program for each combination of sizes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from opgen.graph.build.model import Model
    from opgen.graph.compiled.function import CompiledFunction
    from opgen.graph.compiled.staged import StagedModel
    from opgen.graph.ir.nodes import Graph
    from opgen.graph.kernels.parallel_build import Progress
    from opgen.onnx.source import ModelSource


@overload
def compile(source: Callable[..., Any], *, progress: Progress | None = None) -> CompiledFunction: ...
@overload
def compile(source: ModelSource | Model | Graph, *, progress: Progress | None = None) -> StagedModel: ...
def compile(
    source: ModelSource | Model | Graph | Callable[..., Any], *, progress: Progress | None = None
) -> StagedModel | CompiledFunction:
    """Return a callable model that takes tensors in the order of its inputs: `model(x)`, `model.run({"x": x})`.

    `source` is one of these:

    - the path of an ONNX model, its bytes or a `ModelProto` (needs `pip install 'opgen[onnx]'`);
    - a `Model` or a `Graph`;
    - a function that calls generated functions (also as a decorator), which is captured when it is called.

    A program is made for each call with new sizes.  `progress` receives the number of its finished kernels, the number
    of all its kernels, and the current step.

    Memory is bounded whatever sizes come.  `opgen.graph.program.programs.PROGRAMS` programs are kept, those used last.
    Runs have one arena each, none larger than the largest of these programs needs; all programs share the weights.  The
    first `opgen.graph.program.bucketing.SPECIAL` combinations of sizes get kernels of their own, further ones share
    kernels.

        model = opgen.compile("model.onnx")
        y = model(x)

    A compiled model can be pickled (`multiprocessing`, `joblib`): the pickle holds its source, a path as a path.  So
    can a compiled function whose function can be pickled.

    Raises UserError for a model that cannot be read, or that takes operators which opgen does not have: all of them, by
    node and reason.
    """
    if isinstance(source, str | os.PathLike | bytes | bytearray | memoryview):
        whole = bytes(source) if isinstance(source, bytearray | memoryview) else source
        return _pickled_as(of_source(whole, progress), whole)
    from opgen.graph.build.model import Model
    from opgen.graph.ir.nodes import Graph

    if isinstance(source, Graph):
        return _pickled_as(of_graph(source, progress), source)
    if isinstance(source, Model):
        return _pickled_as(of_model(source, progress), source)
    if callable(source):
        from opgen.graph.compiled.function import CompiledFunction

        return CompiledFunction(source, progress)
    from opgen.onnx.load import load

    return _pickled_as(of_model(load(source), progress), source)


def _pickled_as(model: StagedModel, source: object) -> StagedModel:
    """Return a model that another process compiles from its source when it is unpickled there."""
    model.again = (compile, (source,))
    return model


def of_source(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview, progress: Progress | None
) -> StagedModel:
    """Return a model by its path or bytes; the file is not parsed if its program is already cached."""
    from opgen.onnx.known import KnownModel

    model = KnownModel(source)
    from opgen.graph.compiled.staged import StagedModel  # while the file is hashed

    outline, recall = model.known()
    inputs = {i.name: i.dtype for i in outline.inputs}
    return StagedModel(outline.name, inputs, model.resolve, progress, recall, outline, model.model)


def of_model(model: Model, progress: Progress | None = None) -> StagedModel:
    """Return a model whose sizes may be open."""
    from opgen.graph.compiled import staged

    return staged.of_model(model, progress)


def of_graph(graph: Graph, progress: Progress | None = None) -> StagedModel:
    """Return the compiled form of a graph, which is for its sizes alone."""
    from opgen.graph.compiled.compiled import as_is
    from opgen.graph.compiled.staged import StagedModel
    from opgen.graph.ir.values import Input, Outline

    types = {v.name: v.dtype for v in graph.inputs}
    declared = tuple(Input(v.name, v.dtype, v.shape) for v in graph.inputs)
    outline = Outline(graph.name, declared, graph.result_names, len(graph.nodes))
    return StagedModel(graph.name, types, lambda kinds, _: as_is(graph, kinds), progress, outline=outline)
