"""Tensors of models: what they hold is what their shape needs, and data outside the model's folder are never read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opgen.onnx.errors import MalformedModelError
from opgen.onnx.load import load
from opgen.onnx.tensors import TensorError, TensorRefusedError, array
from tests.onnx.models import constant, model, module, node

TYPES = ["bool", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
def test_elements_come_as_bytes_or_as_numbers(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)) - 2).reshape(shape).astype(dtype)
    listed = helper.make_tensor("t", helper.np_dtype_to_tensor_dtype(values.dtype), shape, values.reshape(-1).tolist())
    for tensor in (numpy_helper.from_array(values), listed):
        found = array(tensor, None)
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)


def test_short_floats_are_bits() -> None:
    values = np.array([1.5, -2, np.inf], ml_dtypes.bfloat16)
    tensor = helper.make_tensor("t", TensorProto.BFLOAT16, (3,), values.astype(np.float32).tolist())
    assert np.array_equal(array(tensor, None).view(np.uint16), values.view(np.uint16))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dims": [3]}, "it holds 8 bytes, and its shape needs 12"),
        ({"dims": [2**62, 2**62]}, f"it holds 8 bytes, and its shape needs {2**126}"),
        ({"dims": [-1, -2]}, r"\[-1, -2\] is not a shape"),
        ({"dims": [1] * 33}, "is not a shape"),
        ({"dims": [0, 2**62]}, r"\[0, 4611686018427387904\] is not a shape of an array: its sizes are too large"),
        ({"data_type": 0}, "0 is no scalar type"),
        ({"data_type": 77}, "77 is no scalar type"),
        ({"data_type": -3}, "-3 is no scalar type"),
    ],
)
def test_shapes_that_do_not_fit(change: dict[str, Any], said: str) -> None:
    tensor = constant("t", np.float32([1, 2]))
    for field, value in change.items():
        if field == "dims":
            tensor.dims[:] = value
        else:
            setattr(tensor, field, value)
    with pytest.raises(TensorError, match=said):
        array(tensor, None)


def test_kinds_that_are_refused() -> None:
    words = helper.make_tensor("t", TensorProto.STRING, (1,), [b"word"])
    part = constant("t", np.float32([1]))
    part.segment.begin = 0
    for tensor, said in ((words, "scalar type string"), (part, "segments")):
        with pytest.raises(TensorRefusedError, match=said):
            array(tensor, None)


def external(location: str, **others: int) -> TensorProto:
    """A tensor of four floats whose data lie in a file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **others}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def saved(folder: Path, tensor: TensorProto) -> Path:
    """A model file whose only constant the tensor is."""
    path = folder / "model.onnx"
    whole = model([node("Add", ["x", "w"], ["y"])], initialisers=[tensor])
    path.write_bytes(whole.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with data beside it, and links to them within."""
    inside = tmp_path / "model"
    (inside / "part").mkdir(parents=True)
    values = np.arange(6, dtype=np.float32).tobytes()
    for place in (tmp_path / "secret", inside / "data", inside / "part" / "data"):
        place.write_bytes(values)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "near").symlink_to(inside / "data")
    (inside / "deep").symlink_to("part/../near")
    (inside / "out").symlink_to(tmp_path)
    (tmp_path / "model-2").mkdir()
    (tmp_path / "model-2" / "data").write_bytes(values)
    (inside / "beside").symlink_to(tmp_path / "model-2" / "data")
    (inside / "round").symlink_to("round")
    os.mkfifo(inside / "pipe")
    return inside


@pytest.mark.parametrize("location", ["data", "part/data", "./data", "part/./data", "near", "deep"])
def test_data_beside_the_model(folder: Path, location: str) -> None:
    for offset in (0, 8):
        found = load(saved(folder, external(location, offset=offset, length=16)), module())
        assert found.constants["w"].array.tolist() == [offset / 4 + i for i in range(4)]


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (external("../secret"), "no path within the model's folder"),
        (external("part/../../secret"), "no path within the model's folder"),
        (external("/etc/passwd"), "no path within the model's folder"),
        (external(""), "no path within the model's folder"),
        (external("."), "no path within the model's folder"),
        (external("link"), "is a link that leads out of the model's folder; copy the file that it leads to"),
        (external("out/secret"), "is a link that leads out of the model's folder"),
        (external("beside"), "is a link that leads out of the model's folder"),
        (external("round"), "cannot be read in the model's folder: Too many levels"),
        (external("gone"), "cannot be read in the model's folder"),
        (external("data/more"), "cannot be read in the model's folder"),
        (external("part"), "is no plain file"),
        (external("pipe"), "is no plain file"),
        (external("data", offset=12), "ends before byte 28"),
        (external("data", length=8), "is said to hold 8 bytes"),
        (external("data", offset=-4), "offset is no number of bytes"),
        (external("data", offset=10**30), "offset is no number of bytes"),
        (external("x" * 5000), "cannot be read in the model's folder"),
    ],
)
def test_data_that_are_not_read(folder: Path, tensor: TensorProto, said: str) -> None:
    with pytest.raises(MalformedModelError, match=f"initialiser 'w': .*{said}"):
        load(saved(folder, tensor), module())


def test_data_and_model_are_links_into_one_folder(folder: Path, tmp_path: Path) -> None:
    """As the cache of Hugging Face has them; a model that is one itself is read there, too."""
    repository = tmp_path / "hub" / "models--someone--some"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0af3" / "onnx"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    saved(folder, external("model.onnx_data")).rename(blobs / "5e1f")
    (folder / "data").rename(blobs / "77c2")
    (snapshot / "model.onnx").symlink_to("../../../blobs/5e1f")
    data = snapshot / "model.onnx_data"
    data.symlink_to("../../../blobs/77c2")
    assert load(snapshot / "model.onnx", module()).constants["w"].array.tolist() == [0, 1, 2, 3]
    data.unlink()
    data.symlink_to(tmp_path / "secret")
    with pytest.raises(MalformedModelError, match=r"'model.onnx_data' is a link that leads out"):
        load(snapshot / "model.onnx", module())
    data.unlink()
    (snapshot / "model.onnx").unlink()
    (snapshot / "model.onnx").write_bytes((blobs / "5e1f").read_bytes())
    data.symlink_to("../../../blobs/77c2")
    with pytest.raises(MalformedModelError, match=r"'model.onnx_data' is a link that leads out"):
        load(snapshot / "model.onnx", module())


def test_a_model_from_no_file_has_no_data_beside_it(folder: Path) -> None:
    data = saved(folder, external("data")).read_bytes()
    for source in (data, onnx.ModelProto.FromString(data)):
        with pytest.raises(MalformedModelError, match="the model came from no file"):
            load(source, module())
