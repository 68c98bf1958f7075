"""The check that the compiler names no op: what it finds, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_names import GIVEN_AWAY, findings, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "text",
    ["conv", "a conv2d kernel", "Conv2D", "convolution", "convolves", "deconvolution", "DepthwiseThing", "max_pool",
     "MaxPool", "pooling", "softmax", "soft_max", "MatMul", "gemm", "Winograd", "backprop", "relu", "layer_norm"],
)  # fmt: skip
def test_names_of_ops_are_found(text: str) -> None:
    assert GIVEN_AWAY.search(text)


@pytest.mark.parametrize(
    "text",
    ["convert", "Convert(x)", "conversion", "convention", "converge", "convenient", "thread pool", "a pool of workers",
     "normal", "stack", "matrix", "maximum", "layout", "backend"],
)  # fmt: skip
def test_ordinary_words_are_not(text: str) -> None:
    assert not GIVEN_AWAY.search(text)


def test_names_that_specs_declare_are_found_as_whole_words(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.op").write_text("op Frobnicate {\n}\n")
    (tmp_path / "opgen").mkdir()
    (tmp_path / "opgen" / "a.py").write_text("x = 1\ny = frobnicate(x)\nz = frobnicated\n")
    assert list(findings(tmp_path)) == ["opgen/a.py:2:5: frobnicate"]


def test_names_that_are_ordinary_words_are_found_as_strings(tmp_path: Path) -> None:
    (tmp_path / "specs" / "onnx").mkdir(parents=True)
    (tmp_path / "specs" / "onnx" / "a.op").write_text("op Add {\n}\n\nop ReduceMax {\n}\n")
    (tmp_path / "opgen").mkdir()
    (tmp_path / "opgen" / "a.py").write_text("add(x)  # Add it\nif call.op == 'Add':\n    reducemax = \"add\"\n")
    assert list(findings(tmp_path)) == ["opgen/a.py:2:15: 'Add'", "opgen/a.py:3:5: reducemax"]


def test_a_file_named_after_an_op_is_found(tmp_path: Path) -> None:
    (tmp_path / "opgen").mkdir()
    (tmp_path / "opgen" / "conv2d.py").write_text("")
    assert list(findings(tmp_path)) == ["opgen/conv2d.py: the path itself says 'conv'"]


def test_this_repository_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT)]) == 0, capsys.readouterr().out
