"""The interface `onnx.backend.base.Backend`, for ONNX's own tests of models, and programs written for it.

from opgen.onnx import backend backend.prepare(model).run([x])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opgen.diagnostics import UserError, did_you_mean
from opgen.graph.build.model import Model
from opgen.graph.compiled.staged import of_model
from opgen.graph.ir.values import Outline
from opgen.onnx.errors import PackageMissingError
from opgen.onnx.load import load
from opgen.onnx.package import newest
from opgen.onnx.source import ModelSource

try:
    from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
    from onnx.backend import base
except ImportError as error:
    raise PackageMissingError from error


class Prepared(base.BackendRep):
    """A model that is ready to be run."""

    def __init__(self, model: Model, outputs: Sequence[str]) -> None:
        """`outputs` are the names of the results."""
        self.model = model
        self.compiled = of_model(model)
        self._type = base.namedtupledict("Outputs", list(outputs))

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model; return the results, in the order of the model's outputs, also by name.

        `inputs` are in order, by name, or a single one.  An input that has a default may be given by name.

        Raises ArgumentError for an input that does not fit, and ModelError if the model cannot run with such inputs.
        """
        compiled = self.compiled.taking(inputs.keys() if isinstance(inputs, Mapping) else ())
        return self._type(*compiled.results(tuple(_in_order(compiled.outline, inputs))))


class Backend(base.Backend):
    """opgen as a backend of ONNX, on the processor."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return True if a model can be loaded for a device."""
        try:
            load(model)
        except UserError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelSource, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Return the model, ready to be run.  Raises UserError for one that cannot be, and for another device."""
        if not cls.supports_device(device):
            raise UserError(f"models run on the device 'CPU', not on {device!r}")
        loaded = load(model)
        outputs = [o.name for o in model.graph.output] if isinstance(model, ModelProto) else loaded.outputs
        return Prepared(loaded, list(outputs))

    @classmethod
    def run_model(cls, model: ModelSource, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Return the results of a model that is run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Return the results of a single node, of opset `opset_version` (the newest)."""
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = [np.asarray(each) for each in inputs]
        declared = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=False)
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], node.name or node.op_type, declared, outputs)
        opset = helper.make_opsetid(node.domain, int(kwargs.get("opset_version", newest())))
        return cls.run_model(helper.make_model(graph, opset_imports=[opset]), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True if models run on a device, as ONNX writes it: `CPU`, `CUDA:1`."""
        return device.split(":")[0] == "CPU"


def _in_order(model: Outline, inputs: Any) -> list[object]:
    """Return the inputs as the model takes them; those that are messages as arrays."""
    names = [i.name for i in model.inputs]
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        if unknown:
            known = [*names, *(i.name for i in model.defaults)]
            hint = did_you_mean(unknown[0], known) or f"there is {', '.join(known) or 'none'}"
            raise UserError(f"{model.name}: unknown input '{unknown[0]}'; {hint}")
        missing = [name for name in names if name not in inputs]
        if missing:
            raise UserError(f"{model.name}: the input '{missing[0]}' is missing")
        return [_array(inputs[name]) for name in names]
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if len(given) != len(names):
        raise UserError(f"{model.name}: it takes {len(names)} inputs ({', '.join(names)}), given {len(given)}")
    return [_array(each) for each in given]


def _array(given: object) -> object:
    return numpy_helper.to_array(given) if isinstance(given, TensorProto) else given


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
