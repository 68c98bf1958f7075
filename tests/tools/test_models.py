"""The models that opgen is shown to run: manifests, topologies with weights of their own, the list of operators."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from tools.models import light, manifest, operators, wheels
from tools.models.__main__ import main
from tools.models.catalogue import ENTRIES
from tools.models.manifest import Input, Manifest


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    first = (Input("x", "float32", (2, 3)), Input("ids", "int64", (4,), 0, 9))
    written = Manifest("small", tmp_path / "small.onnx", "a small one", (first, (Input("x", "float32", ()),)))
    manifest.write(written)
    assert manifest.read(tmp_path / "small.json") == written
    assert manifest.read_all(tmp_path) == []  # its model is missing
    written.model.touch()
    assert manifest.read_all(tmp_path) == [written]
    with pytest.raises(FileNotFoundError):
        manifest.read_all(tmp_path, ["other"])


def test_values_are_drawn_alike_for_a_seed_and_within_what_is_said() -> None:
    inputs = (
        Input("x", "float32", (5, 7)),
        Input("ids", "int64", (1000,), 3, 9),
        Input("mask", "float32", (99,), 0, 1),
    )
    given = Manifest("m", Path("m.onnx"), "", (inputs, inputs))
    drawn, again = given.draw(0, seed=4), given.draw(0, seed=4)
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)
    assert not np.array_equal(drawn["x"], given.draw(1, seed=4)["x"])
    assert not np.array_equal(drawn["x"], given.draw(0, seed=5)["x"])
    assert {i.name: (drawn[i.name].dtype, drawn[i.name].shape) for i in inputs} == {
        i.name: (np.dtype(i.dtype), i.shape) for i in inputs
    }
    assert set(drawn["ids"].tolist()) == set(range(3, 10))
    assert set(drawn["mask"].tolist()) == {0.0, 1.0}


def test_every_model_has_two_sizes_of_the_same_inputs() -> None:
    assert len({e.name for e in ENTRIES}) == len(ENTRIES) == 22
    for entry in ENTRIES:
        first, second = ([(i.name, i.dtype, len(i.shape), i.low, i.high) for i in size] for size in entry.sizes)
        assert first == second, entry.name
        assert [i.shape for i in entry.sizes[0]] != [i.shape for i in entry.sizes[1]], entry.name


def test_a_topology_gets_weights_of_its_own_and_an_open_batch() -> None:
    model = onnx.load(light.FOLDER / "light_shufflenet.onnx")
    model.ir_version = 8
    filled = {node.output[0] for node in model.graph.node if node.op_type == "ConstantOfShape"}
    light.open_batch(model)
    light.fill(model, np.random.default_rng(0))
    onnx.checker.check_model(model)
    assert [i.name for i in model.graph.input] == ["gpu_0/data_0"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert not [n for n in model.graph.node if n.op_type == "ConstantOfShape"]
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    assert filled <= set(constants)
    for node in model.graph.node:
        if node.op_type == "Reshape":
            assert constants[node.input[1]][0] == 0
        if node.op_type == "BatchNormalization":
            positive = {node.input[1], node.input[4]} & filled
            assert all(constants[name].min() >= 0.5 for name in positive)
        if node.op_type in ("Conv", "Gemm"):
            assert len(np.unique(constants[node.input[1]])) > 1


def test_a_file_of_a_wheel_that_is_there_needs_no_network(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "some_models-1.2-py3-none-any.whl", "w") as archive:
        archive.writestr("some/model.onnx", b"bytes")
    assert wheels.fetch("some-models==1.2", "some/model.onnx", tmp_path) == b"bytes"


def test_operators_are_listed_with_version_attributes_and_types(tmp_path: Path) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Add", ["t", "w"], ["y"])]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, 3]), ("y", None))
    )
    weights = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph(nodes, "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    result = CliRunner().invoke(operators.main, [str(tmp_path)])
    assert result.output.splitlines() == [
        "Add-14: 1 nodes",
        "  in m 1",
        "  inputs: float32[2], float32[1] constant (1)",
        "  outputs: 1 (1)",
        "Transpose-13: 1 nodes",
        "  in m 1",
        "  perm: [1, 0] (1)",
        "  inputs: float32[2] (1)",
        "  outputs: 1 (1)",
    ]


def test_what_an_environment_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(main, [str(tmp_path), "--only", "lstm"])
    assert result.exit_code == 1
    assert result.output == "Error: lstm: this environment has no torch, onnx, onnxscript\n"
