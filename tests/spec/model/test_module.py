"""What a module finds by name and by version."""

from __future__ import annotations

import pickle

from opgen.spec import load
from opgen.spec.model import model as m
from tests.support.repository import ROOT

ONNX = ROOT / "specs" / "onnx" / "onnx_ops.op"


def test_ops_are_found_by_version() -> None:
    module = load(ONNX)
    for version in module.versions:
        found = module.by_version(version.name, version.last or version.first)
        newest = max(
            (v for v in module.versions if v.name == version.name and v.first <= (version.last or version.first)),
            key=lambda v: v.first,
        )
        assert found is not None
        assert found.name == newest.op
    assert module.by_version("Nothing", 1) is None


def test_what_is_worked_out_is_no_part_of_a_pickle() -> None:
    """An index by name would make each kept model larger, and is of one process."""
    module = load(ONNX)
    fresh = pickle.dumps(module)
    assert module.generic(module.generics[0].name) is module.generics[0]
    assert module.generics[0].inputs is module.generics[0].inputs
    assert pickle.dumps(module) == fresh
    assert isinstance(pickle.loads(fresh), m.Module)
