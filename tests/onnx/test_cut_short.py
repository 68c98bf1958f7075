"""Files of external data that are cut short: a typed error before they are read, and nothing after that."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import opgen
from opgen.diagnostics import UserError
from tests.onnx.models import float_input, model, node


def written(folder: Path) -> Path:
    """A model that adds weights of a file of their own."""
    np.ones(1000, np.float32).tofile(folder / "data")
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, dims=[1000])
    weights.external_data.add(key="location", value="data")
    whole = model([node("Add", ["x", "w"], ["y"])], [float_input("x", (1000,))], initialisers=[weights])
    onnx.save(whole, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("cache", ["on", "off"])
def test_after_the_first_call_nothing_happens(cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", cache)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    compiled, x = opgen.compile(written(tmp_path)), np.zeros(1000, np.float32)
    compiled(x)
    os.truncate(tmp_path / "data", 0)
    assert (compiled(x) == 1).all()


@pytest.mark.parametrize("cache", ["on", "off"])
def test_before_the_first_call_it_is_a_typed_error(cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", cache)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    compiled = opgen.compile(written(tmp_path))
    os.truncate(tmp_path / "data", 0)
    with pytest.raises(UserError, match="it has changed since it was opened"):
        compiled(np.zeros(1000, np.float32))
