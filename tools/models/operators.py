"""`python -m tools.models.operators DIR`: the operators that models use, with versions, attributes, types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

LONGEST = 60
"""Characters of a value that are shown."""


@dataclass
class Use:
    """Uses of an operator: the number of nodes by model, and each attribute's and input's kinds."""

    models: Counter[str] = field(default_factory=Counter)
    attributes: dict[str, Counter[str]] = field(default_factory=dict)
    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[int] = field(default_factory=Counter)


@click.command("operators")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Lists the operators of the models in FOLDER: NAME-VERSION, the version being that of its definition in ONNX."""
    uses: dict[tuple[str, str, int], Use] = {}
    for path in sorted(folder.glob("*.onnx")):
        look(path, uses)
    for (domain, name, version), use in sorted(uses.items()):
        click.echo(f"{domain + '.' if domain else ''}{name}-{version}: {sum(use.models.values())} nodes")
        click.echo("  in " + ", ".join(f"{model} {n}" for model, n in sorted(use.models.items())))
        for attribute, values in sorted(use.attributes.items()):
            click.echo(f"  {attribute}: " + counted(values))
        click.echo("  inputs: " + counted(use.inputs))
        click.echo("  outputs: " + counted(Counter({str(n): c for n, c in use.outputs.items()})))


def counted(values: Counter[str]) -> str:
    """Values with how often each is there, the most frequent first."""
    shown = [f"{value} ({n})" for value, n in values.most_common(12)]
    return "; ".join(shown) + ("; ..." if len(values) > len(shown) else "")


def look(path: Path, uses: dict[tuple[str, str, int], Use]) -> None:
    """Add a model's uses of operators."""
    model = onnx.load(path, load_external_data=False)
    opsets = {o.domain: o.version for o in model.opset_import}
    kinds = dict(_kinds(model))
    for node in _nodes(model.graph):
        version = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain).since_version
        use = uses.setdefault((node.domain, node.op_type, version), Use())
        use.models[path.stem] += 1
        for attribute in node.attribute:
            use.attributes.setdefault(attribute.name, Counter())[_value(helper.get_attribute_value(attribute))] += 1
        use.inputs[", ".join(kinds.get(name, "?") if name else "-" for name in node.input)] += 1
        use.outputs[len(node.output)] += 1


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield all nodes, those of graphs inside too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _nodes(inner)


def _kinds(model: ModelProto) -> Iterator[tuple[str, str]]:
    """Type and rank of each value: `float32[4]`; constants are marked."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    for value in (*inferred.value_info, *inferred.input, *inferred.output):
        yield value.name, _kind(value)
    for tensor in inferred.initializer:
        yield tensor.name, f"{_type(tensor.data_type)}[{len(tensor.dims)}] constant"
    for node in model.graph.node:
        if node.op_type == "Constant":
            given = helper.get_attribute_value(node.attribute[0])
            if isinstance(given, TensorProto):
                yield node.output[0], f"{_type(given.data_type)}[{len(given.dims)}] constant"


def _kind(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    return f"{_type(tensor.elem_type)}[{len(tensor.shape.dim) if tensor.HasField('shape') else '?'}]"


def _type(number: int) -> str:
    return str(helper.tensor_dtype_to_np_dtype(number)) if number else "?"


def _value(value: object) -> str:
    if isinstance(value, TensorProto):
        array = numpy_helper.to_array(value)
        text = f"{array.dtype}{list(array.shape)}" + (f" {array.tolist()}" if array.size <= 8 else "")
    elif isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
    elif isinstance(value, GraphProto):
        text = f"a graph of {len(value.node)} nodes"
    else:
        text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


if __name__ == "__main__":
    main()
